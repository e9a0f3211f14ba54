#!/bin/bash
# configs/lm.yaml and configs/lm-words.yaml, each for an hour (tinyshakespeare: half an hour) or M minutes, on all cores; the same command goes on.
#   bench/tables/language_models.sh DATA [--only NAME] [--minutes M] [KEY=VALUE ...]     runs/tables/NAME; a table at the end
# NAME: enwiki, tinyshakespeare, wikitext-2 or ptb-size. KEY=VALUE: as --set, such as train.precision=bf16.
# DATA has enwiki_xml/enwiki_head_2016.xml.gz, tinyshakespeare/input.txt, wikitext-2/wiki.{train,valid,test}.tokens (train also as .gz);
# only what a run reads need be there.
# ptb-size is WikiText-2 cut to the sizes of the Penn Treebank (929,589, 73,760 and 82,430 words and line ends), in lower case, with
# the 10,000 most frequent words of the training part, without empty lines.
set -euo pipefail
data=$(realpath "${1:?usage: bench/tables/language_models.sh DATA [--only NAME] [--minutes M] [KEY=VALUE ...]}")
shift
only= given_minutes=
while [ $# -gt 0 ]; do
  case $1 in
    --only) only=${2:?--only needs a name} ;;
    --minutes) given_minutes=${2:?--minutes needs a number} ;;
    *) break ;;
  esac
  shift 2
done
cd "$(dirname "$0")/../.."
work=runs/tables
mkdir -p "$work/texts"

# whole FILE COMMAND...: the output of the command as FILE, unless it exists
whole() {
  local file=$1
  shift
  [ -e "$file" ] || { "$@" >"$file.part" && mv "$file.part" "$file"; }
}
first_words() { awk -v most="$1" 'NF { n += NF + 1; if (n > most) exit; print }' "$2"; }

wanted() { [ -z "$only" ] || [ "$only" = "$1" ]; }

train=$data/wikitext-2/wiki.train.tokens
if [ ! -e "$train" ] && { wanted wikitext-2 || wanted ptb-size; }; then
  train=$work/texts/wiki.train.tokens
  whole "$train" gzip -dc "$data/wikitext-2/wiki.train.tokens.gz"
fi
if wanted ptb-size; then
  whole "$work/texts/train.txt" first_words 929589 "$train"
  whole "$work/texts/valid.txt" first_words 73760 "$data/wikitext-2/wiki.valid.tokens"
  whole "$work/texts/test.txt" first_words 82430 "$data/wikitext-2/wiki.test.tokens"
fi

# run NAME SPLIT RECIPE MINUTES KEY=VALUE...
run() {
  local name=$1 split=$2 recipe=$3 minutes=${given_minutes:-$4}
  shift 4
  wanted "$name" || return 0
  env -u OPENBLAS_CORETYPE build/release/capstan train --config "configs/$recipe.yaml" --minutes "$minutes" \
    --set "name=$name" "folder=$work" "$@" >"$work/$name.out" 2>&1 || { tail -20 "$work/$name.out" >&2; exit 1; }
  env -u OPENBLAS_CORETYPE build/release/capstan eval "$work/$name" --split "$split" |
    awk -v name="$name" -v split_="$split" -v recipe="$recipe" -v minutes="$minutes" \
      -v last="$(grep -o '"peak_rss_bytes":[0-9]*' "$work/$name/metrics.jsonl" | tail -1 | cut -d: -f2)" '
      { of[$1] = $2 }
      END { printf "| %s | %s.yaml | %s | %s | %.4f | %.4f | %s | %.0f |\n", name, recipe, minutes, split_, of["loss"], of["bits_per_byte"],
            of["word_perplexity"], last / 1e6 }'
}

echo "| text | recipe | minutes | split | loss, nats per token | bits per byte | perplexity per word | peak RSS, MB |"
echo "|---|---|---|---|---|---|---|---|"
run enwiki test lm 60 "data.train=[$data/enwiki_xml/enwiki_head_2016.xml.gz]" "$@"
# nanoGPT's split: the last tenth is for validation. Characters, as there: the loss is comparable.
run tinyshakespeare valid lm 30 "data.train=[$data/tinyshakespeare/input.txt]" data.valid_fraction=0.1 data.test_fraction=0 \
  data.tokenizer=char "$@"
run wikitext-2 test lm-words 60 "data.train=[$train]" "data.valid=[$data/wikitext-2/wiki.valid.tokens]" \
  "data.test=[$data/wikitext-2/wiki.test.tokens]" "$@"
run ptb-size test lm-words 60 "data.train=[$work/texts/train.txt]" "data.valid=[$work/texts/valid.txt]" "data.test=[$work/texts/test.txt]" \
  data.tokenizer.lower_case=true data.tokenizer.max_size=10000 "$@"
