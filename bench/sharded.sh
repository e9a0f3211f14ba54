#!/bin/bash
# Peak memory of a training run (large.yaml) in 1, 2 and 4 ranks beside the prediction of `capstan inspect`; then the same run in a control group
# with less memory than one rank needs: refused with one rank, trained with four, each of which has so much.
#   bench/sharded.sh [CAPSTAN] [LIMIT_MB]
# The last part needs root and the memory controller of control groups (version 1 or 2).
set -euo pipefail
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun (package openmpi-bin)"; exit 0; }
capstan=$(realpath "${1:-$(dirname "$0")/../build/release/capstan}")
config=$(realpath "$(dirname "$0")/large.yaml")
limit=$((${2:-1300} * 1000000))
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  groups=/sys/fs/cgroup/capstan-sharded-$$ key=memory.max
else
  groups=/sys/fs/cgroup/memory/capstan-sharded-$$ key=memory.limit_in_bytes
fi
work=$(mktemp -d)
trap 'rm -rf "$work"; rmdir "$groups"/* "$groups" 2>/dev/null || true' EXIT
cd "$work"
seq 1 20000 >text.txt
peak() { grep -o '"peak_rss_bytes":[0-9]*' "runs/$1/metrics.jsonl" | cut -d: -f2 | sort -n | tail -1; }
printf '%5s %20s   %s\n' ranks 'peak RSS of rank 0' 'predicted, without code and libraries'
for ranks in 1 2 4; do
  mpirun -n $ranks "$capstan" train --config "$config" --set name=ranks-$ranks >log 2>&1 || { cat log >&2; exit 1; }
  predicted=$("$capstan" inspect "$config" --ranks $ranks --speed 1000 --bandwidth 1 --latency 1 | sed -n 's/^memory per rank, at least: //p')
  printf '%5d %17d MB   %s\n' $ranks $(($(peak ranks-$ranks) / 1000000)) "$predicted"
done

mkdir "$groups" 2>/dev/null || { echo "skipped: control groups cannot be made here"; exit 0; }
if [ "$key" = memory.max ]; then echo +memory >"$groups/cgroup.subtree_control"; fi
# Every rank has a group of its own, as if it were alone on a machine with so much memory.
cat >within <<END
#!/bin/bash
group=$groups/\${OMPI_COMM_WORLD_RANK:-0}
mkdir -p \$group
echo $limit >\$group/$key
echo \$\$ >\$group/cgroup.procs
exec "\$@"
END
chmod +x within
echo
for ranks in 1 4; do
  echo "$ranks rank(s) with $((limit / 1000000)) MB each:"
  if mpirun -n $ranks ./within "$capstan" train --config "$config" --set name=limited-$ranks >log 2>&1; then
    echo "  trained; peak RSS of rank 0: $(($(peak limited-$ranks) / 1000000)) MB"
  else
    echo "  refused: $(grep -m1 -E 'error|needs at least' log)"
  fi
done
