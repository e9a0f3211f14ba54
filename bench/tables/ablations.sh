#!/bin/bash
# The sweeps of configs/ablations, five minutes a run: two sweeps at a time, each on one core, so that all are disturbed alike.
#   bench/tables/ablations.sh DATA [--set KEY=VALUE ...]
# The same command goes on. Runs are in runs/ablation; each sweep's table is printed and kept in bench/tables/records.
set -euo pipefail
data=$(realpath "${1:?usage: bench/tables/ablations.sh DATA}")
shift
cd "$(dirname "$0")/../.."
mkdir -p runs/ablation

run_sweep() {
  local name=$1 record=bench/tables/records/ablation-$1.csv
  shift
  env -u OPENBLAS_CORETYPE build/release/capstan sweep --config configs/ablations/base.yaml "configs/ablations/$name.yaml" \
    --set "data.train=[$data/enwiki_xml/enwiki_head_2016.xml.gz]" "$@" > "runs/ablation/$name.log" 2>&1 ||
    { tail -20 "runs/ablation/$name.log" >&2; return 1; }
  build/release/capstan compare "runs/ablation/$name"/* --format csv > "$record.part" && mv "$record.part" "$record"
}

export -f run_sweep
export data
# The longest sweeps first.
printf '%s\n' depth chunk seeds parts kernel | xargs -P 2 -I '{}' bash -c 'run_sweep "$@"' run_sweep '{}' "$@"
for name in depth parts chunk kernel seeds; do
  echo "== $name"
  bench/tables/ablation_table.py "$name"
done
