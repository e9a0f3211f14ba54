#!/bin/bash
# Kills ranks of a job at random moments: in the middle of steps, of checkpoints, of the token cache. Each kill is followed by
# the same command with another number of ranks and threads, until the run ends; its weights and the optimizer's state must
# then be those of one process that was never disturbed. Every fourth signal is SIGTERM, to one rank alone: the job must save
# and end with exit code 75. Nothing may take more than 60 seconds. Before that, ranks are stopped (SIGSTOP) and killed in each phase: in
# starts, steps, saves and evaluations; the others must end within the time-out and name the rank.
#   scripts/attack/ranks.sh [COUNT] [SEED] [CASES]     COUNT signals (100), CASES in the phases (12)
# CAPSTAN_PROGRAM, CAPSTAN_MPIRUN and CAPSTAN_MPI_PLUGIN name another program, mpirun and plugin.
set -euo pipefail
cd "$(dirname "$0")/../.."

count=${1:-100}
RANDOM=${2:-1}
cases=${3:-12}
capstan=$(realpath "${CAPSTAN_PROGRAM:-build/release/capstan}")
mpirun=${CAPSTAN_MPIRUN:-$(command -v mpirun || true)}
[ -n "$mpirun" ] || { echo "skipped: there is no mpirun (package openmpi-bin)"; exit 0; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export CAPSTAN_MPI_PLUGIN=${CAPSTAN_MPI_PLUGIN:-$(dirname "$capstan")/libcapstan_mpi.so}
cp "$capstan" "$folder/capstan"  # its processes have a name of their own
capstan=$folder/capstan
cd "$folder"
for i in $(seq 4000); do echo "line $((i * 7919 % 4001)) of a text with number $((i * 104729 % 997))"; done >text.txt
cat >lm.yaml <<'END'
data: {type: text, train: [text.txt], sequence_length: 32, tokenizer: char, cache: cache}
model:
  type: language-model
  width: 32
  max_length: 32
  dropout: 0.1
  ngram_embedding: {orders: [2], buckets: 500}
  layers: [{mixer: {type: aft-local, window: 4, rank: 4}, feed_forward: {type: gelu, expansion: 2}}]
train: {steps: 400, batch_size: 9, lanes: 8, valid_every: 90, log_every: 10, save_every: 7, keep_optimizer: true, progress: plain}
END
fail() {
  echo "FAILED: $*"
  tail -n 20 log
  exit 1
}

train() { "$capstan" train --config lm.yaml --set "$@"; }
train name=one threads=1 2>log || fail "the undisturbed run does not end"
last() { ls "runs/$1/checkpoints" 2>/dev/null | grep '^step-' | sort -V | tail -n 1; }
sum() { cat "runs/$1/checkpoints/$(last "$1")/"{model,optimizer}.safetensors | sha256sum; }

ranks() { pgrep -f "^$capstan train" || true; }
pause() { perl -e "select(undef, undef, undef, $1)"; }

signals=(STOP KILL)
# One rank of three is stopped or killed in a phase that takes most of the time; then the run goes on to the bits of one process.
timeout=4
declare -A phase_keys=(
  [start]="train.save_every=0 train.valid_every=0"
  [step]="train.save_every=0 train.valid_every=0"
  [save]="train.save_every=1 train.valid_every=0 model.ngram_embedding.buckets=200000"
  [evaluation]="train.save_every=0 train.valid_every=1 data.valid_fraction=0.8"
)
declare -A tried=() noticed=() longest=()
phases=(start step save evaluation)
for ((case = 0; case < cases; ++case)); do
  phase=${phases[case % 4]} signal=${signals[case / 4 % ${#signals[@]}]} victim=$((RANDOM % 3))
  read -ra keys <<<"${phase_keys[$phase]} train.schedule.shape=constant"
  "$mpirun" -n 3 "$capstan" train --config lm.yaml --rank-timeout $timeout \
    --set "name=hung-$case" threads=1 train.progress=plain "${keys[@]}" train.steps=100000 >log 2>&1 &
  job=$!
  for ((i = 0; i < 2000; ++i)); do
    if [ $phase = start ]; then [ "$(ranks | wc -l)" -lt 3 ] || break; else ! grep -q "Step 10" log || break; fi
    [ -e "/proc/$job" ] || break
    pause 0.05
  done
  pause "$((RANDOM % 400)) / 1000"
  mapfile -t processes < <(ranks)
  [ ${#processes[@]} -eq 3 ] || fail "case $case: ${#processes[@]} ranks at the $phase after $i looks"
  name="rank [0-9] (process ${processes[victim]} " stopped=${processes[victim]}
  kill -$signal "$stopped"
  began=$(date +%s%N)
  alive() { [ "$(cut -d ' ' -f 3 "/proc/$job/stat" 2>/dev/null || echo Z)" != Z ]; }
  for ((i = 0; i < 600; ++i)); do
    ranks | grep -qvx "$stopped" || break
    pause 0.05
  done
  took=$((($(date +%s%N) - began) / 1000000))
  left=$(ranks | xargs)
  ranks | xargs -r kill -KILL 2>/dev/null || true
  [ $i -lt 600 ] || { kill -KILL $job; fail "case $case: $signal of rank $victim at the $phase is not noticed by process $left of ${processes[*]}"; }
  for ((i = 0; i < 200; ++i)); do
    alive || break
    pause 0.05
  done
  [ $i -lt 200 ] || kill -KILL $job
  code=0
  wait $job || code=$?
  [ $code -ne 0 ] || fail "case $case: exit code 0"
  key="$phase $signal"
  tried[$key]=$((${tried[$key]:-0} + 1))
  longest[$key]=$((took > ${longest[$key]:-0} ? took : ${longest[$key]:-0}))
  how=$(grep -ao "no [a-z ]* from $name.*seconds\|no message reaches $name.*seconds\|$name.*has ended\|rank $victim with PID.*on signal 9" log | head -n 1 || true)
  if [ -n "$how" ]; then
    noticed[$key]=$((${noticed[$key]:-0} + 1))
  elif [ $phase = start ]; then  # ranks that do not know each other yet can only say that MPI does not start
    how=$(grep -ao "MPI does not start" log | head -n 1 || true)
  fi
  [ $took -le $((1000 * timeout + 4000)) ] || fail "case $case: $signal at the $phase is noticed after $took ms"
  echo "case $case: $signal of rank $victim at the $phase, ended after $took ms: ${how:-NOT NAMED: $(grep -a error: log | head -n 2 || true)}"
  last=$(last "hung-$case")
  last=${last:-step-0}
  for name in hung again; do
    train "name=$name-$case" threads=2 "${keys[@]}" train.save_every=0 train.steps=$((${last#step-} + 3)) 2>log ||
      fail "case $case: $name does not end"
  done
  [ "$(sum "hung-$case")" = "$(sum "again-$case")" ] || fail "case $case: after $last the run has other weights"
  rm -rf runs/*-$case
done
for key in "${!tried[@]}"; do echo "$key: ${tried[$key]} cases, ${noticed[$key]:-0} named, at most ${longest[$key]} ms"; done | sort

kills=0 terms=0 saved=0 run=1 named=0 launchers=0
sizes=(1 2 3 5)
while [ $((kills + terms)) -lt "$count" ]; do
  size=${sizes[RANDOM % 4]} threads=$((1 + RANDOM % 2))
  [ $((RANDOM % 8)) -gt 0 ] || rm -rf cache
  "$mpirun" -n "$size" "$capstan" train --config lm.yaml --set "name=run-$run" "threads=$threads" >log 2>&1 &
  job=$!
  pause "$((RANDOM % 3000)) / 1000"
  mapfile -t processes < <(ranks)
  signal=KILL
  [ $((RANDOM % 4)) -gt 0 ] || signal=TERM
  hit=0
  if [ ${#processes[@]} -gt 0 ] && kill -$signal "${processes[RANDOM % ${#processes[@]}]}" 2>/dev/null; then hit=1; fi
  # A run that began to train notices SIGTERM; before that, it ends at once.
  training=0
  ! grep -q "Step\|resumed" log || training=1
  for ((i = 0; i < 600; ++i)); do
    [ -e "/proc/$job" ] || break
    [ "$(cut -d ' ' -f 3 "/proc/$job/stat" 2>/dev/null || echo Z)" != Z ] || break
    pause 0.1
    if [ $hit -eq 0 ] && [ $i -gt 50 ]; then i=0; fi  # no rank was hit: it may train to its end
  done
  if [ -e "/proc/$job" ] && [ $i -ge 600 ]; then
    left=$(ranks | xargs)
    kill -KILL $job
    [ -z "$left" ] || fail "signal $((kills + terms + 1)): the job of $size ranks hangs: $left of ${processes[*]} do not end"
    launchers=$((launchers + 1))  # all ranks have ended, and mpirun waits for them
  fi
  code=0
  wait $job || code=$?
  if [ $hit -eq 1 ]; then
    if [ $signal = TERM ]; then
      terms=$((terms + 1))
      [ $code -ne 75 ] || saved=$((saved + 1))
      if [ $training -eq 1 ] && [ $code -ne 75 ] && [ $code -ne 0 ]; then fail "SIGTERM: exit code $code of $size ranks"; fi
    else
      kills=$((kills + 1))
      ! grep -q "rank [0-9]" log || named=$((named + 1))
      if [ $code -eq 75 ]; then fail "kill -9: exit code 75"; fi
    fi
  fi
  if [ $code -eq 0 ]; then
    [ "$(sum "run-$run")" = "$(sum one)" ] || fail "run $run has other weights"
    run=$((run + 1))
  fi
done
"$mpirun" -n 2 "$capstan" train --config lm.yaml --set "name=run-$run" threads=1 >log 2>&1 || fail "the last run does not end"
[ "$(sum "run-$run")" = "$(sum one)" ] || fail "run $run has other weights"
echo "$kills kills, $terms SIGTERM ($saved saved with exit code 75), $launchers times mpirun did not end, $run runs with the weights of the undisturbed one"
