#!/bin/bash
# From a fresh clone to a tested build: packages, format, build/release, every test program in both precisions.
#   scripts/test.sh                   everything but the tests labelled `long`
#   scripts/test.sh --fast [ROOM...]  while working: the test programs of these rooms, or of the rooms with changed files
#                                     (scripts/changed-files.sh), and the check of includes. Not the rooms above them, and no
#                                     tests of the command line.
#   scripts/test.sh --long            what takes too long for every change (scripts/test-long.sh): lint, documentation, sanitizers, the tests
#                                     labelled `long`, the Python package, fuzzers, the portable build, and the four below
#   scripts/test.sh --threads [TEST PROGRAM...]   ThreadSanitizer: the test programs of core, data, train and serve, a short training of
#                                     every system and an attack on a server. What is suppressed, with reasons: tests/tsan.supp
#   scripts/test.sh --interop         exported models in other programs, the openai client and Chromium (tests/interop)
#   scripts/test.sh --arm64 [JOBS]    the ARM64 build under qemu (scripts/install-arm64.sh installs what it takes)
#   scripts/test.sh --run BUILD_FOLDER [ctest options]    the tests of a build folder
# Closes with one line: N passed, N failed, N skipped. Exit code 0 only when every program ran and nothing failed.
set -euo pipefail
cd "$(dirname "$0")/.."

all_rooms=(core nn models data train run serve apps)

# Every test program writes "<passed> <failed> <skipped>" to <build>/test-counts/<its name>, then one line "<case>: <reason>" for each
# skipped case. A program that wrote nothing is absent, crashed or ran nothing: that fails.
run_tests() {
  local build=$1 counts=$1/test-counts names name status=0 passed=0 failed=0 skipped=0 p f s reasons
  shift
  rm -rf "$counts"
  mkdir -p "$counts"
  names=$(ctest --test-dir "$build" -N "$@" | sed -n 's/^ *Test *#[0-9]*: \([^ ]*\).*/\1/p')
  if [ -z "$names" ]; then
    echo "test.sh: $build knows no such tests" >&2
    return 1
  fi
  ctest --test-dir "$build" --output-on-failure "$@" </dev/null || status=1
  for name in $names; do
    if ! read -r p f s 2>/dev/null <"$counts/$name" || [ $((p + f + s)) -eq 0 ]; then
      echo "$name: absent, crashed, or ran no test case" >&2
      status=1
      continue
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    reasons=$(tail -n +2 "$counts/$name")
    if [ "$(grep -c . <<<"$reasons")" -ne "$s" ]; then
      echo "$name: skipped $s cases, but does not name each of them with its reason" >&2
      status=1
    fi
    if [ "$s" -gt 0 ]; then printf 'skipped in %s:\n%s\n' "$name" "$(sed 's/^/  /' <<<"$reasons")"; fi
  done
  if [ "$failed" -gt 0 ]; then status=1; fi
  if [ "$status" -ne 0 ]; then echo "test.sh: FAILED" >&2; fi
  echo "$passed passed, $failed failed, $skipped skipped"
  return $status
}

# Rooms of the changed files, bottom first; changed files that no room's tests cover are named on stderr.
changed_rooms() {
  local files room
  files=$(scripts/changed-files.sh)
  for room in "${all_rooms[@]}"; do
    if grep -qE "^(tests/)?$room/" <<<"$files"; then echo "$room"; fi
  done
  files=$(grep -vE "^(tests/)?($(IFS='|'; echo "${all_rooms[*]}"))/|^tests/(rooms/|arrows)|\.md$" <<<"$files" || true)
  if [ -n "$files" ]; then echo "--fast does not test these changed files; scripts/test.sh does:" $files >&2; fi
}

fast() {
  local rooms=("$@") room tests programs
  if [ $# -eq 0 ]; then mapfile -t rooms < <(changed_rooms); fi
  if [ ${#rooms[@]} -eq 0 ]; then
    echo "test.sh: no room has changed files; name one: ${all_rooms[*]}" >&2
    exit 2
  fi
  for room in "${rooms[@]}"; do
    [[ " ${all_rooms[*]} " == *" $room "* ]] || { echo "test.sh: $room is no room; the rooms: ${all_rooms[*]}" >&2; exit 2; }
  done
  echo "rooms: ${rooms[*]}"
  [ -e build/release/build.ninja ] || cmake --preset release
  tests="^test_($(IFS='|'; echo "${rooms[*]}|rooms"))(_f64)?$"
  # `help` lists every target as "name: rule"; the globs of sources are read again where a file came or went.
  mapfile -t programs < <(cmake --build --preset release --target help | sed -nE 's/^(test_[a-z0-9_]+): phony$/\1/p' | grep -E "$tests")
  cmake --build --preset release --target "${programs[@]}"
  run_tests build/release -R "$tests"
}

everything() {
  scripts/install-deps.sh test
  scripts/format.sh --check
  cmake --preset release -DCAPSTAN_BENCH=ON  # no test runs the benchmarks, but they must compile
  cmake --build --preset release
  run_tests build/release -LE long -j 2  # most programs keep one core busy
}

# shown NAME COMMAND...: the command's output is shown only when it fails.
shown() {
  local name=$1
  shift
  if "$@" >"$folder/log" 2>&1 </dev/null; then
    echo "passed: $name"
  else
    echo "FAILED: $name"
    cat "$folder/log"
    return 1
  fi
}

# Built with clang, whose OpenMP library tells ThreadSanitizer of its barriers through libarcher: with GCC's library, every parallel loop
# would be reported as a race. OpenBLAS and others are not compiled with ThreadSanitizer: what happens within them is not seen.
threads() {
  local programs=("$@") status=0 planted program mixer archer=/usr/lib/llvm-14/lib/libarcher.so
  if [ $# -eq 0 ]; then programs=(test_core test_data test_train test_serve); fi
  scripts/install-deps.sh develop
  [ -e build/tsan/build.ninja ] || cmake --preset tsan
  cmake --build --preset tsan --target capstan "${programs[@]}"
  [ -e "$archer" ] || { echo "test.sh: $archer is missing; install the package libomp-14-dev" >&2; return 1; }
  export OMP_TOOL_LIBRARIES=$archer OMP_NUM_THREADS=2
  export TSAN_OPTIONS="ignore_noninstrumented_modules=1 suppressions=$PWD/tests/tsan.supp allocator_may_return_null=1 exitcode=66 halt_on_error=0 second_deadlock_stack=1"
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' RETURN
  for planted in -DPLANTED ""; do clang++-14 -O1 -fsanitize=thread -fopenmp=libomp $planted tests/race.cpp -o "$folder/race$planted"; done
  shown "no report without a race" "$folder/race" || status=1
  shown "a planted race is reported" bash -c "! $folder/race-DPLANTED" || status=1
  # A process that was forked from one with threads must not start any under ThreadSanitizer: tests that train in such a child.
  local forking='a second SIGINT ends the process at once*,a kill between any two calls of the file system*'
  for program in "${programs[@]}"; do shown "$program" "build/tsan/bin/$program" --test-case-exclude="$forking" || status=1; done
  if [ $# -eq 0 ]; then
    for mixer in aft-local aft-simple aft-full aft-conv gau fastformer attention flash; do
      shown "training with $mixer" build/tsan/capstan train --config configs/quickstart-lm.yaml --set "name=$mixer" "folder=$folder" threads=2 \
        "data.train=[README.md]" data.split=tail model.width=64 model.max_length=64 data.sequence_length=64 data.overlap=0 model.dropout=0.1 "model.layers=[{mixer: {type: $mixer}}]" \
        train.steps=6 train.batch_size=16 train.valid_every=3 train.save_every=2 || status=1
    done
    shown "a server under attack" env CAPSTAN_PROGRAM=build/tsan/capstan python3 scripts/attack/serve 1 || status=1
  fi
  return $status
}

# Packages come into virtual environments below build/; what cannot be installed is skipped.
interop() {
  local status=0 version place script name
  export HF_HUB_OFFLINE=1
  cmake --build --preset release --target capstan run_numbers || return 1
  for version in "==4.57.*" ">=5"; do
    place=build/interop${version//[^0-9]/}
    [ -x "$place/bin/python" ] || python3 -m venv "$place" || { echo "skipped: no virtual environment"; return 0; }
    if ! "$place/bin/pip" install -q torch "transformers$version" accelerate safetensors xxhash onnx onnxscript onnxruntime xllamacpp gguf openai selenium tensorboard; then
      echo "skipped: the packages for transformers$version cannot be installed"
      continue
    fi
    for script in tests/interop/*.py; do
      name=$(basename "$script" .py)
      case $name in browser | exported_run | sample_run | safetensors_checkpoint | tensorboard_events) continue ;; esac  # parts of others, or run by hand
      echo "-- $name, transformers$version"
      "$place/bin/python" "$script" || status=1
    done
  done
  return $status
}

# What is not run there, and why: tests/arm64-left-out.txt and docs/notes/portable-build.md. The output is in build/arm64/NAME.log.
arm64() {
  local root=build/arm64-root tool jobs=${1:-$(nproc)} status=0 runs programs=(test_core test_nn test_models test_data test_train test_run)
  for tool in aarch64-linux-gnu-g++ qemu-aarch64-static "$root/usr/include/xsimd"; do
    if ! command -v "$tool" >/dev/null && [ ! -e "$tool" ]; then
      echo "ARM64: skipped: there is no $tool; scripts/install-arm64.sh installs it"
      return 0
    fi
  done
  cmake --preset arm64
  cmake --build build/arm64 -j "$jobs" --target capstan "${programs[@]}"
  printf '%s\n' "${programs[@]}" | xargs -P "$jobs" -I NAME bash -c '
    timeout 10800 qemu-aarch64-static -L "$0" build/arm64/bin/NAME --test-case-exclude="$1" >build/arm64/NAME.log 2>&1
    code=$?
    echo "== NAME, ARM64"
    tail -$((code == 0 ? 3 : 200)) build/arm64/NAME.log
    exit $code' "$root" "$(grep -v '^#' tests/arm64-left-out.txt | paste -sd,)" || status=1
  echo "== quickstart, ARM64"
  runs=$(mktemp -d)
  emulated() { qemu-aarch64-static -L "$root" build/arm64/capstan "$@" || status=1; }
  emulated train --config configs/quickstart-classifier.yaml --set "folder=$runs" data.train=400 data.valid=100 train.epochs=0 train.steps=4
  emulated eval "$runs/quickstart-classifier"
  emulated train --config configs/quickstart-lm.yaml --set "folder=$runs" "data.train=[README.md]" data.split=tail train.steps=4
  emulated generate "$runs/quickstart-lm" --prompt "The " --tokens 20
  emulated verify --replay "$runs/quickstart-lm"
  rm -rf "$runs"
  return $status
}

long() {
  local status=0
  scripts/install-deps.sh develop
  part() { echo "== $1" && shift && "$@" || status=1; }
  part lint scripts/lint.sh --all
  cmake --preset release
  part "API documentation" cmake --build --preset release --target docs
  cmake --preset asan
  cmake --build --preset asan
  # Without detect_stack_use_after_return: the stack that GCC 12 puts in its place is aligned to 32 bytes, and 512-bit registers that are
  # spilled to it end the program (seen in transpose_block of nn/systems/quadratic/kernels/tile.cpp).
  # allocator_may_return_null: tests ask for memory that no system has.
  export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:check_initialization_order=1:allocator_may_return_null=1
  export UBSAN_OPTIONS=print_stacktrace=1
  part sanitizers run_tests build/asan -LE long
  part threads scripts/test.sh --threads
  cmake --build --preset release
  part "long tests" run_tests build/release -L long
  part "Python package" python/test.sh
  part "other programs" scripts/test.sh --interop
  part fuzzers scripts/fuzz.sh 1
  cmake --preset portable
  cmake --build --preset portable
  part "portable build" run_tests build/portable -LE long
  part ARM64 scripts/test.sh --arm64
  return $status
}

case ${1:-} in
  "") everything ;;
  --run) run_tests "${@:2}" ;;
  --fast) fast "${@:2}" ;;
  --long) long ;;
  --threads) threads "${@:2}" ;;
  --interop) interop ;;
  --arm64) arm64 "${@:2}" ;;
  *)
    sed -n '2,16s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
