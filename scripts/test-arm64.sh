#!/bin/bash
# The tests of the ARM64 build, under qemu's emulation, and the quickstart (scripts/install-arm64.sh installs what it takes).
# Skipped with a message where tools are missing. What is left out, and why: docs/notes/portable-build.md.
#   scripts/test-arm64.sh [JOBS]
set -euo pipefail
cd "$(dirname "$0")/.."

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
  timeout 10800 qemu-aarch64-static -L "$0" build/arm64/bin/NAME >build/arm64/NAME.log 2>&1
  code=$?
  echo "== NAME, ARM64"
  if [ $code -eq 0 ]; then tail -3 build/arm64/NAME.log; else tail -200 build/arm64/NAME.log; fi
  exit $code' "$root" || status=1

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
