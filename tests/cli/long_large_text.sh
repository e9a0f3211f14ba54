# A text larger than the memory it gets: 2 GB of generated lines are tokenised and trained on with at most 1 GiB of resident
# memory, and kill -9 in the middle of tokenising changes nothing. $MEGABYTES chooses another size, $LARGE_TEXT_FOLDER a
# disk with three times as much room, $TOKENIZERS others than byte (a tenth of the text each, for their speed).
. "$(dirname "$0")/support.sh"

megabytes=${MEGABYTES:-2000}
export TMPDIR=${LARGE_TEXT_FOLDER:-${TMPDIR:-/tmp}}

# make_text MEGABYTES FILE: lines of words in the proportions of Zipf's law, a twentieth of the text twenty times
make_text() {
  perl -e '
    srand(1);
    my @words = map { my $w = ""; $w .= chr(97 + int(rand(26))) for 0 .. 2 + rand(7); $w } 1 .. 5000;
    my ($size, $line) = (0, 0);
    while ($size < 5e4 * $ARGV[0]) {
      my $text = join(" ", ++$line, map { $words[int(5000 ** rand) - 1] } 1 .. 200) . "\n";
      $size += length $text;
      print $text;
    }' "$1" >part
  for _ in {1..20}; do cat part; done >"$2"
  rm part
}

# set_command NAME TOKENIZER TEXT [KEY=VALUE...]: sets `command`
set_command() {
  local name=$1 tokenizer=$2 text=$3
  shift 3
  command=("$capstan" train --config "$source/configs/quickstart-lm.yaml"
    --set name="$name" "data.train=[$text]" data.include=[] data.exclude=[] data.split=tail data.tokenizer="$tokenizer"
    data.valid_fraction=0.0002 model.width=64 model.ngram_embedding.orders=[]
    train.max_minutes=0 train.steps=200 train.valid_every=200 train.log_every=100
    train.save_every=0 "$@")
}

# train NAME TOKENIZER TEXT [KEY=VALUE...]: leaves what it says in the file err
train() {
  set_command "$@"
  "${command[@]}" 2>err && return
  tail err
  return 1
}

# peak NAME: of the whole process, in MiB, as it stood when training ended
peak() {
  sed -n 's/.*"peak_rss_bytes":\([0-9]*\).*/\1/p' "runs/$1/metrics.jsonl" | sort -n | tail -n 1 | awk '{ print int($1 / 1048576) }'
}

# tokens: checksums of all that was made, by name
tokens() {
  (cd runs/.cache && find . -name '*.tokens' -o -name 'index.json' | sort | xargs sha256sum)
}

# kill_at BYTES: starts a run and kills it once so many bytes of tokens are written
kill_at() {
  set_command killed byte text
  "${command[@]}" >/dev/null 2>&1 &
  local run=$! size=0  # of the program itself, no shell between
  while kill -0 $run 2>/dev/null && [ "$size" -lt "$1" ]; do
    size=$(find runs/.cache -path '*/.partial/*' -name '*.tokens' -printf '%s\n' 2>/dev/null | awk '{ sum += $1 } END { print sum + 0 }') || size=0
    sleep 0.05
  done
  kill -9 $run
  ! wait $run 2>/dev/null
  echo "killed with $size bytes of tokens written"
  [ -n "$(find runs/.cache -name .partial)" ]
  [ -z "$(find runs/.cache -name index.json -not -path '*/.partial/*')" ]
}

case_constant_memory_and_kill() {
  make_text "$megabytes" text
  echo "text: $(stat -c %s text) bytes"
  kill_at 1
  kill_at $((megabytes * 500000))
  SECONDS=0
  train after-kill byte text
  grep -a 'data: \|train: ' err || true
  echo "after the kills: $SECONDS s for tokens and 200 steps, peak $(peak after-kill) MiB"
  [ -z "$(find runs/.cache -name .partial)" ]
  tokens | tee killed
  rm -r runs/.cache
  train alone byte text
  tokens >alone
  cmp killed alone
  SECONDS=0
  train again byte text
  says "data: tokens from" err
  echo "with tokens there: $SECONDS s, peak $(peak again) MiB"
  for name in after-kill alone again; do [ "$(peak $name)" -lt 1024 ]; done
}

case_speed_of_tokenizers() {
  [ -n "${TOKENIZERS:-}" ] || skip "TOKENIZERS names none"
  make_text $((megabytes / 10)) text
  for tokenizer in $TOKENIZERS; do
    train "$tokenizer" "$tokenizer" text data.cache=runs/.cache train.steps=2
    grep -a 'data: .* in ' err
    echo "$tokenizer: peak $(peak "$tokenizer") MiB"
  done
}

run_cases
