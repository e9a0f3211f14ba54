#!/bin/bash
# AdamW and Muon at equal time: a search of both learning rates by the validation loss, then three seeds of each winner.
#   bench/optimizers.sh OUT DATA [TASK ...]
# OUT gets the runs (finished ones are skipped when the script is called again), DATA holds tinyshakespeare/input.txt and
# enwiki_xml/enwiki_head_2016.xml.gz; tasks: tinyshakespeare, enwiki. Two runs at a time, one thread each. A step of Muon costs
# more: its processor time per step is measured first, and its runs have as many steps fewer, so that both schedules come to
# their end after the same time. The second column of the tables is the processor time that a run took.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '2,7s/^# \?//p' "$0"; exit 2; }
out=$1 data=$2
shift 2
tasks=${*:-tinyshakespeare enwiki}
program=${CAPSTAN_PROGRAM:-build/release/capstan}
rates=${RATES:-"1e-3 2e-3 4e-3 8e-3"}
seeds=${SEEDS:-"1 2 3"}
declare -A steps=([tinyshakespeare]=${STEPS:-200} [enwiki]=${STEPS:-800}) search=([tinyshakespeare]=${SEARCH:-60} [enwiki]=${SEARCH:-240})
declare -A files=([tinyshakespeare]=tinyshakespeare/input.txt [enwiki]=enwiki_xml/enwiki_head_2016.xml.gz)
declare -A small=([tinyshakespeare]="" [enwiki]="model.ngram_embedding.buckets=100000 data.valid_fraction=0.02 data.test_fraction=0.02")
# AdamW's settings are those of configs/compare; Muon has the same ones for what it leaves to AdamW.
declare -A recipe=([tinyshakespeare-adamw]="" [enwiki-adamw]="" [tinyshakespeare-muon]="train.optimizer.type=muon"
  [enwiki-muon]="train.optimizer.type=muon train.optimizer.adamw.beta2=0.99")

# train TASK OPTIMIZER NAME STEPS SEED RATE: one run; its processor time goes to NAME/cpu.
train() {
  local folder=$out/$1 name=$3-$2
  [ -f "$folder/$name/cpu" ] && return
  mkdir -p "$folder"
  local TIMEFORMAT=%U
  # shellcheck disable=SC2086  # recipe and small: several words
  { time "$program" train --config "configs/compare/$1.yaml" configs/compare/tiny-flash.yaml --set \
    "data.train=[$data/${files[$1]}]" "folder=$folder" "name=$name" "seed=$5" threads=1 "train.steps=$4" train.epochs=0 \
    ${recipe[$1-$2]} "train.lr=$6" train.schedule.warmup_steps=$(($4 / 10)) train.valid_every=0 \
    train.save_every=0 train.log_every=20 train.progress=none ${small[$1]} >"$folder/$name.log" 2>&1; } 2>"$folder/$name.cpu"
  mv "$folder/$name.cpu" "$folder/$name/cpu"
}

# pair TASK NAME STEPS SEED RATE [RATE of Muon]: both optimizers at once.
pair() {
  train "$1" adamw "$2" "$3" "$4" "$5" &
  local other=$!
  train "$1" muon "$2" "$(python3 -c "print(round($3 * $(cost "$1")))")" "$4" "${6:-$5}"
  wait $other
}

# Processor time of a step of AdamW over that of one of Muon.
cost() {
  [ -d "$out/$1/speed-long-muon" ] || { echo 1; return; }
  python3 - "$out/$1" <<'EOF'
import sys
def of(name): return float(open(f"{sys.argv[1]}/speed-{name}/cpu").read())
print((of("long-adamw") - of("short-adamw")) / (of("long-muon") - of("short-muon")))
EOF
}

# loss FOLDER: of the validation at the run's end.
loss() { grep '"event":"valid"' "$1/metrics.jsonl" | tail -1 | sed 's/.*"loss":\([0-9.e+-]*\).*/\1/'; }

best() {
  for rate in $rates; do echo "$(loss "$out/$1/search-$rate-$2") $rate"; done | sort -g | head -1 | cut -d' ' -f2
}

for task in $tasks; do
  train "$task" adamw speed-short 1 1 1e-3
  train "$task" muon speed-short 1 1 1e-3
  # Under names without "speed-long-muon" until both are done: cost() is 1 so far.
  if [ ! -d "$out/$task/speed-long-muon" ]; then
    pair "$task" timing 25 1 1e-3
    for optimizer in adamw muon; do mv "$out/$task/timing-$optimizer" "$out/$task/speed-long-$optimizer"; done
  fi
  echo "$task: a step of AdamW takes $(cost "$task") of the processor time of one of Muon"
  for rate in $rates; do pair "$task" "search-$rate" "${search[$task]}" 1 "$rate"; done
  for optimizer in adamw muon; do
    for rate in $rates; do
      echo "$task search $optimizer lr $rate: loss $(loss "$out/$task/search-$rate-$optimizer"), $(cat "$out/$task/search-$rate-$optimizer/cpu") s"
    done
  done
  for seed in $seeds; do
    pair "$task" "seed-$seed" "${steps[$task]}" "$seed" "$(best "$task" adamw)" "$(best "$task" muon)"
  done
  for optimizer in adamw muon; do
    for seed in $seeds; do
      echo "$(loss "$out/$task/seed-$seed-$optimizer") $(cat "$out/$task/seed-$seed-$optimizer/cpu")"
    done | python3 -c "
import statistics, sys
rows = [[float(x) for x in line.split()] for line in sys.stdin]
losses = [row[0] for row in rows]
spread = statistics.stdev(losses) if len(losses) > 1 else 0
print(f'$task $optimizer lr $(best "$task" "$optimizer"): loss {statistics.mean(losses):.4f} +- {spread:.4f}, '
      f'{statistics.mean(row[1] for row in rows):.0f} s each; ' + ' '.join(f'{x:.4f}' for x in losses))"
  done
done
