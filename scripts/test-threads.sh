#!/bin/bash
# ThreadSanitizer over the tests of core (float), data, train and serve, a short training of every system and an attack on a server,
# each with two threads; any report fails. Built with clang, whose OpenMP library tells ThreadSanitizer of its barriers through
# libarcher: GCC's library does not, and every parallel loop would be reported as a race. What is suppressed, with reasons:
# tests/tsan.supp.
#   scripts/test-threads.sh [TEST PROGRAM...]     these test programs only (test_core, test_data, test_train, test_serve)
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install-deps.sh develop
programs=("$@")
if [ $# -eq 0 ]; then programs=(test_core test_data test_train test_serve); fi
[ -e build/tsan/build.ninja ] || cmake --preset tsan
cmake --build --preset tsan --target capstan "${programs[@]}"

archer=/usr/lib/llvm-14/lib/libarcher.so
if [ ! -e "$archer" ]; then
  echo "test-threads.sh: $archer is missing; install the package libomp-14-dev" >&2
  exit 1
fi
export OMP_TOOL_LIBRARIES=$archer OMP_NUM_THREADS=2
# OpenBLAS and the other libraries are not compiled with ThreadSanitizer: what happens within them is not seen.
export TSAN_OPTIONS="ignore_noninstrumented_modules=1 suppressions=$PWD/tests/tsan.supp allocator_may_return_null=1 exitcode=66 halt_on_error=0 second_deadlock_stack=1"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0
# run NAME COMMAND...: its output is shown only when it fails.
run() {
  local name=$1
  shift
  if "$@" >"$folder/log" 2>&1 </dev/null; then
    echo "passed: $name"
  else
    echo "FAILED: $name"
    cat "$folder/log"
    status=1
  fi
}
# The check must be able to fail: a planted race is reported, the same loop with a barrier between both accesses is not.
cat >"$folder/race.cpp" <<'END'
#include <cstdio>
int main() {
  int numbers[2] = {0, 0}, sum = 0;
#pragma omp parallel num_threads(2)
  {
#pragma omp for schedule(static)
    for (int i = 0; i < 2; ++i) numbers[i] = i;
#ifdef PLANTED
    sum += numbers[0] + numbers[1];
#else
#pragma omp single
    sum += numbers[0] + numbers[1];
#endif
  }
  std::printf("%d\n", sum);
}
END
for planted in -DPLANTED ""; do
  clang++-14 -O1 -fsanitize=thread -fopenmp=libomp $planted "$folder/race.cpp" -o "$folder/race$planted"
done
run "no report without a race" "$folder/race"
if "$folder/race-DPLANTED" >"$folder/log" 2>&1; then
  echo "FAILED: the planted race is not reported"
  status=1
fi

# A process that was forked from one with threads must not start any under ThreadSanitizer: tests that train in such a child.
forking='a second SIGINT ends the process at once*,a kill between any two calls of the file system*'
for program in "${programs[@]}"; do run "$program" "build/tsan/bin/$program" --test-case-exclude="$forking"; done

if [ $# -eq 0 ]; then
  for i in {1..400}; do echo "the tape turns a drum and wire number $i runs out slow"; done >"$folder/text.txt"
  cat >"$folder/lm.yaml" <<END
name: lm
folder: $folder/runs
threads: 2
data: {type: text, train: [$folder/text.txt], sequence_length: 64, cache: $folder/cache, cache_above_mb: 0}
model:
  type: language-model
  width: 64
  max_length: 64
  dropout: 0.1
  ngram_embedding: {orders: [2], buckets: 500, width: 8}
  layers: [{mixer: {type: aft-local}}]
train: {steps: 6, batch_size: 16, valid_every: 3, save_every: 2, ema_decay: 0.9, progress: plain}
END
  for mixer in aft-local aft-simple aft-full aft-conv gau fastformer attention flash; do
    run "training with $mixer" build/tsan/capstan train --config "$folder/lm.yaml" --set "name=$mixer" "model.layers.0.mixer.type=$mixer"
  done
  if command -v python3 >/dev/null; then  # no test program starts a server and ends it by a signal
    run "a server under attack" env CAPSTAN_PROGRAM=build/tsan/capstan python3 scripts/attack/serve 1
  else
    echo "skipped: a server under attack: needs python3"
  fi
fi
exit $status
