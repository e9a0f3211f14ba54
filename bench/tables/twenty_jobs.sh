#!/bin/bash
# Twenty jobs of somebody who begins, with the commands that README.md and docs/ give for them. Prints every command, and at the end a
# table: keys that had to be set, seconds, and a figure of the result. records/twenty-jobs.md has it beside other programs.
#   bench/tables/twenty_jobs.sh [DATA [JOB...]]     DATA: folder of data sets (default ../shared/data), JOB: numbers from 1 to 20
# CAPSTAN names the program (default build/release/capstan), WORK the folder for data and runs (default: a new one). Jobs whose data are not there are
# skipped. PYTHON=python3 also times fastText and scikit-learn on the data of the classifiers (packages fasttext-wheel, scikit-learn).
set -uo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
capstan=$(realpath "${CAPSTAN:-build/release/capstan}")
data=$(realpath -m "${1:-../shared/data}")
[ $# -gt 0 ] && shift
wanted=" ${*:-$(seq -s ' ' 20)} "
work=${WORK:-$(mktemp -d)}
mkdir -p "$work/bin" && cd "$work" || exit 1
ln -sf "$capstan" bin/capstan
PATH=$work/bin:$PATH
rows=()

# begin NUMBER TITLE [FILE OF DATA]: false if the job is not wanted or its data are not there
begin() {
  number=$1 title=$2 keys=0 seconds=0 figure=- failed=
  [[ $wanted == *" $number "* ]] || return 1
  printf '\n== %s. %s\n' "$number" "$title"
  if [ $# -gt 2 ] && [ ! -e "$data/$3" ]; then
    echo "skipped: there is no $data/$3"
    rows+=("| $number | $title | skipped: no $3 | | |")
    return 1
  fi
}

# run COMMAND...: prints it, counts its keys and its time; its output is in the files out and err
run() {
  local shown='' word
  for word in "$@"; do
    [[ $word == *[\ \[\]\>]* ]] && shown+=" '$word'" || shown+=" $word"
    [[ $word =~ ^[a-z_.]+= ]] && keys=$((keys + 1))
  done
  echo "\$$shown"
  local start=$EPOCHREALTIME
  "$@" >out 2>err </dev/null
  status=$?
  seconds=$(awk -v all="$seconds" -v from="$start" -v to="$EPOCHREALTIME" 'BEGIN { print all + to - from }')
  [ $status -eq 0 ] || { failed="exit code $status"; tail -3 err; }
}

# take NAME: a figure that the last command has printed
take() { figure="${figure#-}${figure:+ }$1 $(awk -v name="$1" '$1 == name { print $2; exit }' out)"; figure=${figure# }; }

end() {
  [ -z "$failed" ] || figure="FAILED: $failed"
  echo "$keys keys, $(printf '%.1f' "$seconds") s, $figure"
  rows+=("| $number | $title | $keys | $(printf '%.1f' "$seconds") | $figure |")
}

# beside TRAIN TEST [characters]: the same with fastText and scikit-learn; the files have lines LABEL<TAB>TEXT
beside() {
  [ -n "${PYTHON:-}" ] || return 0
  "$PYTHON" - "$@" <<'PYTHON'
import gzip, sys, time
import fasttext
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
fasttext.FastText.eprint = lambda *_: None
def read(path):
    with (gzip.open(path, "rt") if path.endswith(".gz") else open(path)) as lines:
        return [(line.rstrip("\n").split("\t")[0], line.rstrip("\n").split("\t")[-1]) for line in lines]
train, test = read(sys.argv[1]), read(sys.argv[2])
characters = "characters" in sys.argv
words = (lambda text: " ".join(text.replace(" ", ""))) if characters else (lambda text: " ".join(text.split()))
start = time.perf_counter()
with open("fasttext.txt", "w") as file:
    for label, text in train:
        file.write(f"__label__{label.replace(' ', '_')} {words(text)}\n")
model = fasttext.train_supervised("fasttext.txt", wordNgrams=2, epoch=25, lr=0.5, verbose=0)
found = model.predict([words(text) for _, text in test])[0]  # a list: a single text fails with NumPy 2
right = sum(one[0][9:] == label.replace(" ", "_") for one, (label, _) in zip(found, test))
print(f"   fastText: accuracy {right / len(test):.4f}, {time.perf_counter() - start:.1f} s")
start = time.perf_counter()
vectors = TfidfVectorizer(analyzer="char", ngram_range=(1, 3)) if characters else TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
fitted = make_pipeline(vectors, LogisticRegression(C=10, max_iter=1000)).fit([x for _, x in train], [y for y, _ in train])
print(f"   scikit-learn: accuracy {fitted.score([x for _, x in test], [y for y, _ in test]):.4f}, {time.perf_counter() - start:.1f} s")
PYTHON
}

# table FROM TO ORDER DELIMITER HEADER: the data set's label and last column as CSV with a column of numbers
table() {
  local reader=cat
  [[ $1 == *.gz ]] && reader=zcat
  $reader "$1" | awk -F'\t' -v order="$3" -v d="$4" -v header="$5" '
    function quoted(s) { gsub(/"/, "\"\"", s); return "\"" s "\"" }
    function row(id, label, text,   i, n, names, line) {
      n = split(order, names, " ")
      for (i = 1; i <= n; ++i) line = line (i > 1 ? d : "") (names[i] == "id" ? id : names[i] == "text" ? text : label)
      print line
    }
    NR == 1 && header { row("id", "category", "text") }
    { row(NR - 1, "kind " $1, quoted($NF)) }' >"$2"
}

if begin 1 "language model of a text" tinyshakespeare/input.txt; then
  run capstan train --config lm --set "data.train=[$data/tinyshakespeare/input.txt]" --minutes 1
  run capstan eval runs/lm --split test
  take bits_per_byte
  run capstan generate runs/lm --prompt "ROMEO: " --tokens 100
  end
fi
trec=$data/trec
if begin 2 "classifier, label TAB text" trec/train.tsv; then
  run capstan train --config classify --set name=tab "data.train=[$trec/train.tsv]" "data.test=[$trec/test.tsv]"
  run capstan eval runs/tab --split test
  take accuracy
  end
  beside "$trec/train.tsv" "$trec/test.tsv"
fi
if begin 3 "CSV in three column orders" trec/train.tsv; then
  for order in "id text category" "category text" "text id category"; do
    name=csv-${order// /-}
    table "$trec/train.tsv" "$name.csv" "$order" , 1
    table "$trec/test.tsv" "$name-test.csv" "$order" , 1
    run capstan train --config classify --set "name=$name" "data.train=[$name.csv]" "data.test=[$name-test.csv]"
    run capstan eval "runs/$name" --split test
    take accuracy
  done
  end
fi
if begin 4 "CSV with semicolons, no header" trec/train.tsv; then
  table "$trec/train.tsv" semicolons.csv "category text" ';' ''
  table "$trec/test.tsv" semicolons-test.csv "category text" ';' ''
  run capstan train --config classify --set name=semicolons "data.train=[semicolons.csv]" "data.test=[semicolons-test.csv]"
  run capstan eval runs/semicolons --split test
  take accuracy
  end
fi
if begin 5 "JSONL" trec/train.tsv; then
  for split in train test; do
    awk -F'\t' '{ gsub(/[\\"]/, "\\\\&", $NF); printf "{\"review\": \"%s\", \"id\": %d, \"topic\": \"kind %s\"}\n", $NF, NR, $1 }' \
      "$trec/$split.tsv" >"$split.jsonl"
  done
  run capstan train --config classify --set name=jsonl "data.train=[train.jsonl]" "data.test=[test.jsonl]"
  run capstan eval runs/jsonl --split test
  take accuracy
  end
fi
if begin 6 "a folder per class" trec/train.tsv; then
  for split in train test; do
    awk -F'\t' -v split_="$split" '{ folder = split_ "-folders/kind" $1; if (!made[folder]++) system("mkdir -p " folder)
      file = folder "/" NR ".txt"; print $NF > file; close(file) }' "$trec/$split.tsv"
  done
  run capstan train --config classify --set name=folders data.format=folders "data.train=[train-folders]" "data.test=[test-folders]"
  run capstan eval runs/folders --split test
  take accuracy
  end
fi
if begin 7 "77 classes"; then
  awk 'BEGIN { srand(1); for (i = 0; i < 9000; ++i) { c = int(rand() * 77); line = "my"
    for (w = 0; w < 8; ++w) line = line " word" (rand() < 0.3 ? c * 3 + int(rand() * 5) : int(rand() * 1000))
    print "intent" c "\t" line > (i < 8000 ? "intents.tsv" : "intents-test.tsv") } }'
  run capstan train --config classify --set name=intents "data.train=[intents.tsv]" "data.test=[intents-test.tsv]"
  run capstan eval runs/intents --split test
  take accuracy
  end
  beside intents.tsv intents-test.tsv
fi
if begin 8 "several labels per text" trec/train.tsv; then
  for split in train test; do
    awk -F'\t' 'NR == 1 { print "text,labels" } { split($2, l, ":"); gsub(/"/, "\"\"", $3)
      printf "\"%s\",\"[\x27%s\x27, \x27%s\x27]\"\n", $3, l[1], $2 }' "$trec/$split.tsv" >"labels-$split.csv"
  done
  run capstan train --config classify --set name=labels "data.train=[labels-train.csv]" "data.test=[labels-test.csv]"
  run capstan eval runs/labels --split test
  take micro_f1
  end
fi
if begin 9 "a script without blanks" unspaced/shopping_zh_topic_train.tsv.gz; then
  goods=$data/unspaced/shopping_zh_topic
  run capstan train --config classify --set name=goods "data.train=[${goods}_train.tsv.gz]" "data.test=[${goods}_test.tsv.gz]"
  run capstan eval runs/goods --split test
  take accuracy
  end
  beside "${goods}_train.tsv.gz" "${goods}_test.tsv.gz" characters
fi
if begin 10 "pairs: numbers as words"; then
  "$root/scripts/make-pairs.sh" pairs 20000 300
  for split in train test; do (echo "id,source,target"; awk -F'\t' '{ print NR "," $1 "," $2 }' pairs/$split.tsv) >pairs-$split.csv; done
  run capstan train --config pairs --set "data.train=[pairs-train.csv]" "data.test=[pairs-test.csv]" train.steps=600
  run capstan eval runs/pairs --split test
  take exact_match
  end
fi
if begin 11 "fill blanks" tinyshakespeare/input.txt; then
  run capstan train --config masked-lm --set "data.train=[$data/tinyshakespeare/input.txt]" data.split=tail train.steps=100
  run capstan eval runs/masked-lm
  take perplexity
  echo "O <mask>, my lord" >blanks.txt
  run capstan predict runs/masked-lm blanks.txt --top-k 3
  end
fi
if begin 12 "warm start: few texts, from many of a similar kind" amazon_multidomain/train.tsv.gz; then
  awk -F'\t' '{ print $1 "\t" $3 > (NR <= 300 ? "few.tsv" : "few-test.tsv") }' "$data/sentence_sets/cr.tsv"
  run capstan train --config classify --set name=many "data.train=[$data/amazon_multidomain/train.tsv.gz]"
  run capstan train --config classify --set name=few "data.train=[few.tsv]" "data.test=[few-test.tsv]"
  run capstan eval runs/few --split test
  take accuracy
  run capstan train --config classify --set name=warm train.init_from=runs/many "data.train=[few.tsv]" "data.test=[few-test.tsv]"
  run capstan eval runs/warm --split test
  take accuracy
  end
fi
if begin 13 "sweep and compare" trec/train.tsv; then
  run capstan sweep --config classify --set name=words "data.train=[$trec/train.tsv]" "sweep.model.words=[[1], [1, 2], [1, 2, 3]]"
  run capstan compare runs/words
  figure="best $(awk 'NR == 3 { print $1 }' out)"
  end
fi
if begin 14 "report" trec/train.tsv; then
  [ -d runs/tab ] || capstan train --config classify --set name=tab "data.train=[$trec/train.tsv]" "data.test=[$trec/test.tsv]" 2>err
  run capstan report runs/tab --output report.html
  figure="$(wc -c <report.html) bytes"
  end
fi
if begin 15 "autotune" trec/train.tsv; then
  run capstan autotune --config classify --minutes 1 --set name=search "data.train=[$trec/train.tsv]" "data.test=[$trec/test.tsv]"
  run capstan eval runs/search/best --split test
  take accuracy
  end
fi
if begin 16 "predict an unlabelled CSV into a CSV" trec/train.tsv; then
  [ -d runs/tab ] || capstan train --config classify --set name=tab "data.train=[$trec/train.tsv]" 2>err
  table "$trec/test.tsv" new.csv "id text" , 1
  run capstan predict runs/tab new.csv --output predicted.csv
  figure="$(wc -l <predicted.csv) lines: $(head -1 predicted.csv | cut -c 1-40)"
  end
fi
if begin 17 "embed into NumPy" trec/train.tsv; then
  run capstan train --config ag-news --set name=blocks "data.train=[$trec/train.tsv]" "data.test=[$trec/test.tsv]" train.steps=100
  run capstan embed runs/blocks "$trec/test.tsv" --output vectors.npy
  figure="$(wc -c <vectors.npy) bytes"
  end
fi
if begin 18 "resume after a kill" tinyshakespeare/input.txt; then
  command=(capstan train --config quickstart-lm --set "data.train=[$data/tinyshakespeare/input.txt]" data.split=tail train.steps=40 train.save_every=5 train.keep_optimizer=true)
  run timeout 20 "${command[@]}" name=resumed
  failed=
  run "${command[@]}" name=resumed
  run "${command[@]}" name=unbroken
  cmp runs/resumed/checkpoints/last/model.safetensors runs/unbroken/checkpoints/last/model.safetensors && figure="the same bits"
  end
fi
if begin 19 "install"; then
  run cmake --install "$(dirname "$capstan")" --prefix "$work/installed"
  run "$work/installed/bin/capstan" config print --config classify
  figure="$(wc -l <out) lines of the recipe"
  end
fi
if begin 20 "a mistake in each command"; then
  ok=0 all=0
  echo "a text" >tab.txt
  while read -r words; do
    read -ra words <<<"$words"
    run capstan "${words[@]}"
    all=$((all + 1))
    if [ "$status" -ne 0 ] && grep -qE "did you mean|give[ n]|no such|expected|required|missing: add|for example|choose|use " err; then
      ok=$((ok + 1))
    else
      echo "no remedy (exit code $status): $(head -2 err)"
    fi
  done <<'MISTAKES'
trian --config classify
train --confg classify
train classify
train --config clasify
train --config classify --set data.trian=[x.tsv]
train --config classify --set data.train=[nowhere.tsv]
eval runs/nowhere
eval runs/tab --splt test
predict runs/tab --topk 3
generate runs/lm --temprature 1
score runs/tab
embed runs/tab tab.txt
sweep --config classify
autotune --config classify
compare nowhere
report runs/tab
verify nowhere
clean nowhere
import nowhere.safetensors
config explain train.learning_rate
inspect nowhere
metrics nowhere
help trian
MISTAKES
  failed=
  figure="$ok of $all with a remedy"
  end
fi

printf '\n| | job | keys | seconds | figure |\n|---|---|---|---|---|\n'
printf '%s\n' "${rows[@]}"
[ -n "${WORK:-}" ] || rm -rf "$work"
! grep -q FAILED <<<"${rows[*]}"
