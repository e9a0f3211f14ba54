#!/bin/bash
# Fuzzes the readers of files, configurations and texts (tests/fuzz) with libFuzzer and the sanitizers of clang.
#   scripts/fuzz.sh [MINUTES] [TARGET...]      all targets share the minutes; 1 minute and all targets if not given
#   scripts/fuzz.sh --sum                      executions per target of all calls so far
# Inputs that reach new code are kept in build/fuzz/corpus, and the next call goes on from there; inputs that are findings
# (a crash, a leak, over 10 seconds, over 1 GB) in build/fuzz/findings. CAPSTAN_FUZZ_FOLDER names another folder than
# build/fuzz for these. A finding is fixed, and its input is added to tests/fuzz/corpus/TARGET. Ends with 1 after a finding.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${CAPSTAN_FUZZ_FOLDER:-build/fuzz}
record=$folder/executions.tsv # time, target, executions, per second, edges, features, findings

if [ "${1:-}" = --sum ]; then
  # Edges and features are those of the last call that had a target.
  sort -s -k1,1 "$record" | awk -F'\t' '{ runs[$2] += $3; all += $3; edges[$2] = $5; features[$2] = $6; found[$2] += $7 }
    END { printf "%-22s %14s %7s %9s %9s\n", "target", "executions", "edges", "features", "findings"
          for (t in runs) printf "%-22s %14d %7d %9d %9d\n", t, runs[t], edges[t], features[t], found[t] | "sort"
          close("sort"); printf "%-22s %14d\n", "all", all }'
  exit
fi

minutes=1
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  minutes=$1
  shift
fi

if [ -z "${CAPSTAN_FUZZ_PROGRAMS:-}" ]; then
  scripts/install-deps.sh fuzz
  cmake --preset fuzz >/dev/null
  cmake --build --preset fuzz
fi
programs=${CAPSTAN_FUZZ_PROGRAMS:-build/fuzz/bin} # already built ones, such as a copy that a new build does not change

if [ $# -eq 0 ]; then
  for source in tests/fuzz/fuzz_*.cpp; do
    name=$(basename "$source" .cpp)
    set -- "$@" "${name#fuzz_}"
  done
fi
share=$((minutes * 60 / $#))
[ "$share" -gt 0 ] || share=1
mkdir -p "$folder/findings" "$folder/logs"

# Short stacks of allocations and a small quarantine take less time and memory.
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=0:malloc_context_size=3:quarantine_size_mb=8
export UBSAN_OPTIONS=print_stacktrace=1
status=0
printf '%-22s %12s %8s %7s %9s  %s\n' target executions per-sec edges features findings
for target in "$@"; do
  kept=$folder/corpus/$target log=$folder/logs/$target.log
  mkdir -p "$kept"
  result=0
  "$programs/fuzz_$target" -max_total_time="$share" -timeout=10 -rss_limit_mb=1024 -max_len=1024 -print_final_stats=1 \
    -artifact_prefix="$folder/findings/$target-" "$kept" "tests/fuzz/corpus/$target" >"$log" 2>&1 </dev/null || result=$?
  # "#123 DONE cov: 45 ft: 67 corp: 8/9b exec/s: 10 rss: 11Mb"; after a finding there is no such line, but the ones before.
  read -r edges features < <(grep -a 'cov: ' "$log" | tail -n 1 | sed 's/.* cov: \([0-9]*\) ft: \([0-9]*\).*/\1 \2/') || true
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if [ -z "$executions" ]; then executions=$(sed -n 's/^#\([0-9]*\).*/\1/p' "$log" | tail -n 1); fi
  persecond=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
  found=$((result == 0 ? 0 : 1))
  printf '%-22s %12d %8d %7d %9d  %s\n' "$target" "${executions:-0}" "${persecond:-0}" "${edges:-0}" "${features:-0}" \
    "$([ $found -eq 0 ] && echo none || echo "see $log")"
  printf '%s\t%s\t%d\t%d\t%d\t%d\t%d\n' "$(date -u +%FT%TZ)" "$target" "${executions:-0}" "${persecond:-0}" "${edges:-0}" \
    "${features:-0}" "$found" >>"$record"
  if [ $found -ne 0 ]; then status=1; fi
done
exit $status
