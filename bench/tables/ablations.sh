#!/bin/bash
# The sweeps of configs/ablations, one run after the other on one core, five minutes each; the same command goes on.
#   bench/tables/ablations.sh DATA [--set KEY=VALUE ...]     results in runs/ablation, tables at the end of each sweep
set -euo pipefail
data=$(realpath "${1:?usage: bench/tables/ablations.sh DATA}")
shift
cd "$(dirname "$0")/../.."
for sweep in depth parts chunk kernel; do
  echo "== $sweep"
  env -u OPENBLAS_CORETYPE build/release/capstan sweep --config configs/ablations/base.yaml "configs/ablations/$sweep.yaml" \
    --set "data.train=[$data/enwiki_xml/enwiki_head_2016.xml.gz]" "$@"
done
