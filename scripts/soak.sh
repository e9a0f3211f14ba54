#!/bin/bash
# Trains for a long time and watches whether anything grows: a language model and a classifier, with evaluations, saves and event
# files, while compare, metrics, report, inspect, eval and verify read the runs again and again.
#   scripts/soak.sh MINUTES FOLDER [SECONDS BETWEEN SAMPLES]
# FOLDER gets samples.csv (resident memory, descriptors, threads, bytes of checkpoints and of records, per run and moment), the runs,
# and readers.log. After a warm-up of a fifth of the time a line is fitted through each figure: its rise over the rest must stay below
# 2 % and 2 MB for memory, 0.5 for descriptors and threads, two checkpoints (of four) for checkpoints; records may grow by 1 kB per
# logged step. Every reader must succeed, and the runs end with exit code 75 (interrupted) and can be read afterwards. Exit code 0
# when all of that holds.
# CAPSTAN_PROGRAM names another build of the program.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -lt 2 ]; then
  sed -n '4p' "$0" | sed 's/^# *//' >&2
  exit 2
fi
minutes=$1 folder=$2 pause=${3:-5}
capstan=$(realpath "${CAPSTAN_PROGRAM:-build/release/capstan}")
mkdir -p "$folder"
cd "$folder"
if [ -e samples.csv ]; then
  echo "soak.sh: $folder holds an earlier soak: name another folder" >&2
  exit 2
fi

# Texts and labelled rows without a network: sentences of a fixed pseudo-random sequence.
awk 'BEGIN { srand(1); split("the tape turns a drum and wire runs out slow ship of rope pulls home", words, " ")
  for (i = 0; i < 20000; ++i) { line = ""; for (j = 0; j < 9; ++j) line = line words[1 + int(rand() * 14)] " "
    print line "." > "text.txt"; print (index(line, "ship") ? "sea" : "land") "\t" line i > "rows.tsv" } }'
common="steps: 1000000000, log_every: 200, valid_every: 1000, save_every: 500, keep_last: 3, progress: plain, ema_decay: 0.99"
cat >lm.yaml <<END
name: lm
threads: 1
data: {type: text, train: [text.txt], valid_fraction: 0.02, sequence_length: 32, cache: cache, cache_above_mb: 0,
       tokenizer: {type: sentencepiece, vocabulary_size: 300}}
model: {type: language-model, width: 32, max_length: 32, dropout: 0.1,
        ngram_embedding: {orders: [2, 3], buckets: 1000, width: 8}, layers: [{mixer: {type: aft-local, window: 8, rank: 8}}]}
train: {batch_size: 8, schedule: {shape: constant}, $common}
END
cat >classifier.yaml <<END
name: classifier
threads: 1
data: {type: labelled, train: [rows.tsv], valid_fraction: 0.02, max_length: 32}
model: {type: text-classifier, width: 16, max_length: 32, dropout: 0.1, layers: [{mixer: {type: fastformer, heads: 2}}]}
train: {batch_tokens: 512, schedule: {shape: constant}, $common}
END

declare -A process
end_all() { for run in "${!process[@]}"; do kill -KILL "${process[$run]}" 2>/dev/null || true; done; }
trap end_all EXIT
for run in lm classifier; do
  "$capstan" train --config "$run.yaml" >"$run.out" 2>&1 </dev/null &
  process[$run]=$!
done

failures=0
fail() {
  echo "soak.sh: $*" | tee -a readers.log >&2
  failures=$((failures + 1))
}

readers=("compare runs/lm runs/classifier" "metrics runs/lm" "inspect runs/lm" "eval runs/lm --split valid"
         "eval runs/classifier --split valid" "report runs/lm --output lm.html" "report runs/classifier --output classifier.html")
# `capstan verify` where the program has it.
if "$capstan" --help | grep -q '^  verify '; then readers+=("verify runs/lm" "verify runs/classifier"); fi

bytes_of() { find "$@" -type f -printf '%s\n' 2>/dev/null | awk '{ sum += $1 } END { print sum + 0 }' || true; }
sample() {
  local run=$1 id=${process[$1]} rss threads
  rss=$(awk '/^VmRSS/ { print $2 }' "/proc/$id/status") threads=$(awk '/^Threads/ { print $2 }' "/proc/$id/status")
  # A checkpoint that is being written does not count: its folder has another name.
  echo "$SECONDS,$run,$(find "/proc/$id/fd" -type l | wc -l),$threads,$rss,$(bytes_of "runs/$run"/checkpoints/step-*),$(
    bytes_of "runs/$run" -maxdepth 1),$(tail -n 1 "runs/$run/metrics.jsonl" | sed -n 's/.*"step":\([0-9]*\).*/\1/p')"
}

# Until old checkpoints are removed for new ones.
for run in lm classifier; do
  until [ -e "runs/$run/checkpoints/best" ] &&
    [ "$(tail -n 1 "runs/$run/metrics.jsonl" | sed -n 's/.*"step":\([0-9]*\).*/\1/p')" -ge 2500 ]; do
    if [ $SECONDS -gt 3600 ]; then fail "$run does not get to step 2500 within an hour"; break; fi
    sleep 0.2
  done
done
echo "seconds,run,descriptors,threads,rss_kb,checkpoint_bytes,record_bytes,step" >samples.csv
end=$((SECONDS + minutes * 60)) reads=0
while [ $SECONDS -lt $end ]; do
  for run in lm classifier; do
    kill -0 "${process[$run]}" 2>/dev/null || { fail "the training of $run ended: see $folder/$run.out"; end=0; break; }
    sample "$run" >>samples.csv
  done
  command=${readers[$((reads % ${#readers[@]}))]}
  # shellcheck disable=SC2086
  "$capstan" $command >reader.out 2>reader.err </dev/null || fail "$command: exit code $?: $(tail -n 3 reader.err)"
  reads=$((reads + 1))
  sleep "$pause"
done

for run in lm classifier; do
  kill -TERM "${process[$run]}" 2>/dev/null || true
  code=0
  wait "${process[$run]}" || code=$?
  unset "process[$run]"
  [ $code -eq 75 ] || fail "$run ended with exit code $code after SIGTERM"
  "$capstan" eval "runs/$run" --split valid >reader.out 2>reader.err || fail "eval runs/$run after the end: $(tail -n 3 reader.err)"
done

# The fitted rise of every column over the time after the warm-up, and its bound.
awk -F, -v reads="$reads" '
  NR == 1 { for (i = 1; i <= NF; ++i) name[i] = $i; next }
  { if (!($2 in count)) first[$2] = $1; last[$2] = $1; n = ++count[$2]; for (i = 1; i <= NF; ++i) value[$2, n, i] = $i }
  function bound(i, mean) {
    if (name[i] == "rss_kb") return mean * 0.02 + 2048
    if (name[i] == "checkpoint_bytes") return mean / 2
    return 0.5
  }
  END {
    print "run         figure               mean        rise      bound"
    for (run in count) {
      begin = 1
      while (begin < count[run] && value[run, begin, 1] < first[run] + (last[run] - first[run]) / 5) ++begin
      n = count[run] - begin + 1
      if (n < 10) { print "too few samples of " run; failed = 1; continue }
      for (i = 3; i <= 6; ++i) {
        sx = sy = sxx = sxy = 0
        for (j = begin; j <= count[run]; ++j) {
          x = value[run, j, 1] - value[run, begin, 1]; y = value[run, j, i]
          sx += x; sy += y; sxx += x * x; sxy += x * y
        }
        slope = (n * sxy - sx * sy) / (n * sxx - sx * sx)
        rise = slope * (value[run, count[run], 1] - value[run, begin, 1])
        flat = rise <= bound(i, sy / n)
        printf "%-11s %-16s %11.1f %11.1f %10.1f %s\n", run, name[i], sy / n, rise, bound(i, sy / n), flat ? "" : "GROWS"
        if (!flat) failed = 1
      }
      steps = value[run, count[run], 8] - value[run, begin, 8]
      bytes = value[run, count[run], 7] - value[run, begin, 7]
      flat = bytes <= 1000 * steps / 200
      printf "%-11s %-16s %11.1f per logged step; %d steps %s\n", run, "record_bytes", bytes / (steps / 200), steps, flat ? "" : "GROWS"
      if (!flat) failed = 1
    }
    print reads " commands read the runs meanwhile"
    exit failed
  }' samples.csv || fail "something grows"
if [ "$failures" -eq 0 ]; then echo "flat"; else echo "soak.sh: $failures failures" >&2; exit 1; fi
