#!/bin/bash
# AdamW and Muon at equal time: a search of the learning rate for each by the validation loss, then the best of each with three seeds.
#   bench/optimizers.sh OUT DATA [TASK ...]
# OUT gets the runs; called again, the script skips finished ones. DATA holds tinyshakespeare/input.txt and
# enwiki_xml/enwiki_head_2016.xml.gz; tasks: tinyshakespeare, enwiki. The two optimizers always run at the same time, one thread each,
# so that other work on the machine slows both alike. A step of Muon costs more: both are timed first, and a run of Muon has as many
# steps fewer, so that both schedules come to their end after the same time.
# STEPS, SEARCH (steps of AdamW in the final and in the search runs), RATES and SEEDS change the defaults below.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { sed -n '2,/^set/s/^# \?//p' "$0"; exit 2; }
out=$1 data=$2
shift 2
tasks=${*:-tinyshakespeare enwiki}
program=${CAPSTAN_PROGRAM:-build/release/capstan}
rates=${RATES:-1e-3 2e-3 4e-3 8e-3 1.6e-2 3.2e-2}
seeds=${SEEDS:-1 2 3}
declare -A steps=([tinyshakespeare]=${STEPS:-800} [enwiki]=${STEPS:-400})
declare -A search=([tinyshakespeare]=${SEARCH:-200} [enwiki]=${SEARCH:-100})
# AdamW has the settings of its recipes; Muon has the same ones for what it leaves to AdamW.
declare -A settings=(
  [tinyshakespeare]="--config configs/tinyshakespeare.yaml --set data.train=[$data/tinyshakespeare/input.txt]
    data.valid_fraction=0.02"
  [enwiki]="--config configs/compare/enwiki.yaml configs/compare/tiny-flash.yaml --set
    data.train=[$data/enwiki_xml/enwiki_head_2016.xml.gz] data.valid_fraction=0.004 data.test_fraction=0.004 data.overlap=0
    model.layers.0.repeat=4 model.ngram_embedding.buckets=100000 train.epochs=0"
  [adamw]="train.optimizer.type=adamw train.optimizer.beta2=0.99 train.optimizer.weight_decay=0.1"
  [muon]="train.optimizer.type=muon train.optimizer.adamw.beta2=0.99")

# train TASK OPTIMIZER NAME STEPS SEED RATE: one run, unless it is finished.
train() {
  local name=$3-$2
  [ -f "$out/$1/$name/finished" ] && return
  rm -rf "${out:?}/$1/$name"
  mkdir -p "$out/$1"
  # shellcheck disable=SC2086  # settings: several words
  "$program" train ${settings[$1]} ${settings[$2]} "folder=$out/$1" "name=$name" "seed=$5" threads=1 "train.steps=$4" \
    "train.lr=$6" train.schedule.warmup_steps=$(($4 / 10)) train.valid_every=0 train.save_every=0 train.log_every=5 \
    train.progress=none >"$out/$1/$name.log" 2>&1
  touch "$out/$1/$name/finished"
}

# pair TASK NAME STEPS STEPS_OF_MUON SEED RATE RATE_OF_MUON
pair() {
  train "$1" adamw "$2" "$3" "$5" "$6" &
  local other=$!
  train "$1" muon "$2" "$4" "$5" "$7"
  wait $other
}

# figure NAME FOLDER [FOLDER]: loss of the validation or seconds of the steps of a run; ratio of the steps that the second run has
# made to those of the first, while both ran.
figure() {
  python3 - "$@" <<'EOF'
import json, sys

def events(folder, kind):
    return [event for event in map(json.loads, open(f"{folder}/metrics.jsonl")) if event["event"] == kind]

def steps_per_second(steps, end):
    first, last = steps[1], [step for step in steps if step["seconds"] <= end][-1]
    return (last["step"] - first["step"]) / (last["seconds"] - first["seconds"])

name, *folders = sys.argv[1:]
if name == "loss":
    print(events(folders[0], "valid")[-1]["loss"])
else:
    steps = [events(folder, "train") for folder in folders]
    end = min(run[-1]["seconds"] for run in steps)
    print(end if name == "seconds" else steps_per_second(steps[1], end) / steps_per_second(steps[0], end))
EOF
}

best() {
  for rate in $rates; do echo "$(figure loss "$out/$1/search-$rate-$2") $rate"; done | sort -g | head -1 | cut -d' ' -f2
}

for task in $tasks; do
  pair "$task" speed 60 60 1 1e-3 1e-3
  ratio=$(figure ratio "$out/$task/speed-adamw" "$out/$task/speed-muon")
  echo "$task: Muon makes $ratio of the steps of AdamW in the same time"
  of_muon() { python3 -c "print(round($1 * $ratio))"; }
  for rate in $rates; do
    pair "$task" "search-$rate" "${search[$task]}" "$(of_muon "${search[$task]}")" 1 "$rate" "$rate"
    for optimizer in adamw muon; do
      echo "$task: search, $optimizer, lr $rate: loss $(figure loss "$out/$task/search-$rate-$optimizer")"
    done
  done
  for seed in $seeds; do
    pair "$task" "seed-$seed" "${steps[$task]}" "$(of_muon "${steps[$task]}")" "$seed" "$(best "$task" adamw)" "$(best "$task" muon)"
  done
  for optimizer in adamw muon; do
    for seed in $seeds; do
      echo "$(figure loss "$out/$task/seed-$seed-$optimizer") $(figure seconds "$out/$task/seed-$seed-$optimizer")"
    done | python3 -c "
import statistics, sys
rows = [[float(x) for x in line.split()] for line in sys.stdin]
losses = [row[0] for row in rows]
spread = statistics.stdev(losses) if len(losses) > 1 else 0
print('$task: $optimizer, lr $(best "$task" "$optimizer"): loss', f'{statistics.mean(losses):.4f} +- {spread:.4f},',
      f'{statistics.mean(row[1] for row in rows):.0f} s each:', ' '.join(f'{x:.4f}' for x in losses))"
  done
done
