#!/bin/bash
# Peak memory of the same training run with all parameters trained, and with some of them frozen (train.freeze). The model is large
# and the batch small, so that weights, gradients and moments make up the memory.
#   bench/frozen.sh [CAPSTAN]
set -euo pipefail
capstan=$(realpath "${1:-$(dirname "$0")/../build/release/capstan}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
seq 1 20000 >text.txt
cat >run.yaml <<'END'
name: all
data: {type: text, train: [text.txt], sequence_length: 64, tokenizer: byte}
model:
  type: language-model
  width: 1024
  max_length: 64
  layers:
    - {mixer: {type: aft-simple}, feed_forward: {type: gelu, expansion: 4}, repeat: 6}
train: {steps: 3, batch_size: 1, lanes: 1, valid_every: 0, save_every: 0, log_every: 1, progress: none}
END
printf '%-36s %12s %12s %14s %16s\n' 'train.freeze' 'parameters' 'frozen' 'peak RSS (MB)' 'moments (MB)'
run() { # NAME PATTERNS
  "$capstan" train --config run.yaml --set "name=$1" "train.freeze=[$2]" >"$1.log" 2>&1 || { cat "$1.log" >&2; exit 1; }
  # Elements of the weights, and of those that the optimizer has moments of.
  local weights moments rss frozen
  weights=$(stat -c %s "runs/$1/checkpoints/last/model.safetensors")
  moments=$(stat -c %s "runs/$1/checkpoints/last/optimizer.safetensors")
  rss=$(grep -o '"peak_rss_bytes":[0-9]*' "runs/$1/metrics.jsonl" | cut -d: -f2 | sort -n | tail -1)
  frozen=$(((weights - moments / 2) / 4))
  [ "$2" ] || frozen=0  # the files' headers differ by some bytes
  printf '%-36s %12d %12d %14d %16d\n' "[$2]" $((weights / 4)) $frozen $((rss / 1000000)) $((moments / 1000000))
}
run all ''
run half 'blocks.0.*, blocks.1.*, blocks.2.*'
run blocks 'blocks.*'
