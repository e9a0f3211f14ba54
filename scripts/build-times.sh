#!/bin/bash
# Where the time of a build went, from Ninja's own log: seconds per target, and the slowest objects.
#   scripts/build-times.sh [BUILD_FOLDER [COUNT]]      default: build/release 25
# The seconds are wall time, so run it after a build on an idle machine, and without ccache for what a fresh clone pays:
#   CCACHE_DISABLE=1 cmake --build --preset release --clean-first && scripts/build-times.sh
set -euo pipefail
cd "$(dirname "$0")/.."
log=${1:-build/release}/.ninja_log count=${2:-25}
if [ ! -r "$log" ]; then
  echo "build-times.sh: $log is not there: build first" >&2
  exit 1
fi

# Columns: start ms, end ms, time stamp, output, hash. Of an output that was built several times, the last line counts.
seconds=$(awk -F '\t' '!/^#/ { s[$4] = ($2 - $1) / 1000 } END { for (o in s) printf "%.1f\t%s\n", s[o], o }' "$log" | sort -rn)
echo "seconds  objects  target"
awk -F '\t' '{
  target = $2 ~ /CMakeFiles\/[^\/]*\.dir\// ? $2 : "(links and others)"
  sub(/.*CMakeFiles\//, "", target); sub(/\.dir\/.*/, "", target)
  sum[target] += $1; n[target]++; all += $1; objects++
} END {
  for (t in sum) printf "%7.1f  %7d  %s\n", sum[t], n[t], t
  printf "%7.1f  %7d  all\n", all, objects
}' <<<"$seconds" | sort -rn
echo
echo "The slowest:"
head -n "$count" <<<"$seconds"
