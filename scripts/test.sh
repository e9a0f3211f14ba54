#!/bin/bash
# From a fresh clone to a tested build: packages, format, build/release, every test program in both precisions.
#   scripts/test.sh                   everything but the tests labelled `long` (scripts/test-long.sh)
#   scripts/test.sh --fast [ROOM...]  while working: the test programs of these rooms, or of the rooms with changed files
#                                     (scripts/changed-files.sh), and the check of includes. Not the rooms above them, and no
#                                     tests of the command line.
# Closes with one line: N passed, N failed, N skipped. Exit code 0 only when every program ran and nothing failed.
set -euo pipefail
cd "$(dirname "$0")/.."

all_rooms=(core nn models data train run serve apps)

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

if [ "${1:-}" = --fast ]; then
  shift
  rooms=("$@")
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
  exec scripts/run-tests.sh build/release -R "$tests"
fi
if [ $# -gt 0 ]; then
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi

scripts/install-deps.sh test
scripts/format.sh --check
cmake --preset release -DCAPSTAN_BENCH=ON  # no test runs the benchmarks, but they must compile
cmake --build --preset release
scripts/run-tests.sh build/release -LE long -j 2  # most programs keep one core busy
