#!/bin/bash
# Runs the tests of a build folder through ctest and closes with one line: N passed, N failed, N skipped.
#   scripts/run-tests.sh BUILD_FOLDER [ctest options: -R name, -LE long, ...]
# Every test program writes "<passed> <failed> <skipped>" to <build>/test-counts/<its name>. One that is absent, crashed
# or ran nothing has written nothing, and fails here.
set -euo pipefail

build=$1
shift
counts=$build/test-counts
rm -rf "$counts"
mkdir -p "$counts"

names=$(ctest --test-dir "$build" -N "$@" | sed -n 's/^ *Test *#[0-9]*: \([^ ]*\).*/\1/p')
if [ -z "$names" ]; then
  echo "run-tests.sh: $build knows no such tests" >&2
  exit 1
fi

status=0
ctest --test-dir "$build" --output-on-failure "$@" </dev/null || status=1

passed=0 failed=0 skipped=0
for name in $names; do
  if read -r p f s 2>/dev/null <"$counts/$name" && [ $((p + f + s)) -gt 0 ]; then
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  else
    echo "$name: absent, crashed, or ran no test case" >&2
    status=1
  fi
done
if [ "$failed" -gt 0 ]; then status=1; fi
if [ "$status" -ne 0 ]; then echo "run-tests.sh: FAILED" >&2; fi
echo "$passed passed, $failed failed, $skipped skipped"
exit $status
