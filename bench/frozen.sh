#!/bin/bash
# Peak memory of the same training run (large.yaml) with all parameters trained, and with some of them frozen (train.freeze).
#   bench/frozen.sh [CAPSTAN]
set -euo pipefail
capstan=$(realpath "${1:-$(dirname "$0")/../build/release/capstan}")
config=$(realpath "$(dirname "$0")/large.yaml")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
seq 1 20000 >text.txt
printf '%-36s %12s %12s %14s %16s\n' 'train.freeze' 'parameters' 'frozen' 'peak RSS (MB)' 'moments (MB)'
run() { # NAME PATTERNS
  "$capstan" train --config "$config" --set train.batch_size=1 train.lanes=1 train.keep_optimizer=true "name=$1" "train.freeze=[$2]" >"$1.log" 2>&1 || { cat "$1.log" >&2; exit 1; }
  # Elements of the weights, and of those that the optimizer has moments of.
  local last weights moments rss frozen
  last=$(ls -d "runs/$1/checkpoints/step-"* | sort -V | tail -n 1)
  weights=$(stat -c %s "$last/model.safetensors")
  moments=$(stat -c %s "$last/optimizer.safetensors")
  rss=$(grep -o '"peak_rss_bytes":[0-9]*' "runs/$1/metrics.jsonl" | cut -d: -f2 | sort -n | tail -1)
  frozen=$(((weights - moments / 2) / 4))
  [ "$2" ] || frozen=0  # the files' headers differ by some bytes
  printf '%-36s %12d %12d %14d %16d\n' "[$2]" $((weights / 4)) $frozen $((rss / 1000000)) $((moments / 1000000))
}
run all ''
run half 'blocks.0.*, blocks.1.*, blocks.2.*'
run blocks 'blocks.*'
