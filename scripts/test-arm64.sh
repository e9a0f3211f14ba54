#!/bin/bash
# The tests of the ARM64 build, under qemu's emulation, and the quickstart (scripts/install-arm64.sh installs what it takes).
# Skipped with a message where tools are missing. What is left out, and why: docs/notes/portable-build.md.
#   scripts/test-arm64.sh [JOBS]
#   scripts/test-arm64.sh --left-out    the test cases that are not run, as patterns
set -euo pipefail
cd "$(dirname "$0")/.."

# Cases of more than 2 seconds on an x86-64 CPU: the emulator takes a hundred times as long. `*` stands for a comma.
left_out=(
  "activation memory per token is the same at T = 1024 and at T = 16384"
  "a text's logits have the same bits alone and in random company*"
  "any parameter may be frozen*"
  "the cost of every mixer*"
  "attention does what every mixer must do*"
  "attention with dropout equals its composition*"
  "tiles of any length and any number of threads give the same AFT"
  "causality: keys that are large but do not make earlier weights underflow"
  "every mixer of the variant does what every mixer must do"
  "systems of one size have the same number of parameters on every task*"
  "every block-*.yaml goes with every recipe of labelled texts*"
  "what was learned from a text stays for the next*"
  "a linear run: a signal before it is solved for saves nothing*"
  "ranks and threads do not change the bits: every system as a language model*"
  "ranks and threads do not change the bits: recompute*"
  "ranks and threads do not change the bits: n-grams in the embedding*"
  "200 steps in bf16 follow the loss curve of float32*"
  "a kill between any two calls of the file system loses nothing"
  "linear classifiers: any number of ranks and threads finds the bits of one process"
  "linear classifiers: what was stopped goes on where it was*"
  "linear classifiers: all ranks stop with one*"
  "a rank whose step takes long is waited for as its earlier steps suggest*"
  "a long step of one rank is undone by all of them after a signal*"
  "a step that goes on after a signal is undone*"
  "the rank for which all wait is named*"
  "the iteration brings singular values near one*"
  "passes: as accurate as solving*"
  "online: nearly as accurate as solving for all texts*"
  "texts that are longer than a message may be come in pieces"
  # A rank's processor time shows that it lives: in the emulator's /proc/self/stat, no time passes.
  "a rank that does not answer is named"
  "a rank that hears no other says that it may be cut off itself"
)
if [ "${1:-}" = --left-out ]; then
  printf '%s\n' "${left_out[@]}"
  exit 0
fi

root=build/arm64-root
for tool in aarch64-linux-gnu-g++ qemu-aarch64-static "$root/usr/include/xsimd"; do
  if ! command -v "$tool" >/dev/null && [ ! -e "$tool" ]; then
    echo "ARM64: skipped: there is no $tool; scripts/install-arm64.sh installs it"
    exit 0
  fi
done
jobs=${1:-$(nproc)}
programs=(test_core test_nn test_models test_data test_train test_run)
cmake --preset arm64
cmake --build build/arm64 -j "$jobs" --target capstan "${programs[@]}"

emulated() { qemu-aarch64-static -L "$root" "$@"; }
status=0
# One program keeps one core busy, the longest for an hour. Their output is in build/arm64/NAME.log.
printf '%s\n' "${programs[@]}" | xargs -P "$jobs" -I NAME bash -c '
  timeout 10800 qemu-aarch64-static -L "$0" build/arm64/bin/NAME --test-case-exclude="$1" >build/arm64/NAME.log 2>&1
  code=$?
  echo "== NAME, ARM64"
  if [ $code -eq 0 ]; then tail -3 build/arm64/NAME.log; else tail -200 build/arm64/NAME.log; fi
  exit $code' "$root" "$(IFS=,; echo "${left_out[*]}")" || status=1

echo "== quickstart, ARM64"
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
emulated build/arm64/capstan train --config configs/quickstart-classifier.yaml --set "folder=$runs" data.train=400 data.valid=100 \
  train.epochs=0 train.steps=4 train.progress=none  # a step takes 20 seconds
emulated build/arm64/capstan eval "$runs/quickstart-classifier"
emulated build/arm64/capstan train --config configs/quickstart-lm.yaml --set "folder=$runs" "data.train=[README.md]" data.split=tail \
  train.steps=4 train.progress=none
emulated build/arm64/capstan generate "$runs/quickstart-lm" --prompt "The " --tokens 20
emulated build/arm64/capstan replay "$runs/quickstart-lm"
exit $status
