#!/bin/bash
# Runs the tests of a build folder through ctest, lists the skipped cases with their reasons, and closes with one line:
# N passed, N failed, N skipped.
#   scripts/run-tests.sh BUILD_FOLDER [ctest options: -R name, -LE long, ...]
# Every test program writes "<passed> <failed> <skipped>" to <build>/test-counts/<its name>, then one line
# "<case>: <reason>" for each skipped case. A program that wrote nothing is absent, crashed or ran nothing: that fails.
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
if [ "$status" -ne 0 ]; then echo "run-tests.sh: FAILED" >&2; fi
echo "$passed passed, $failed failed, $skipped skipped"
exit $status
