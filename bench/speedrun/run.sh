#!/bin/bash
# One entry of the speed-run: trains for at most ten minutes on two cores, evaluates, and prints a row for the table of README.md.
#   bench/speedrun/run.sh INPUT.txt NAME CONFIG [--minutes M] [KEY=VALUE ...]     runs/speedrun/NAME; KEY=VALUE: as --set
# INPUT.txt: tinyshakespeare. M: what `capstan train --minutes` gets, for a configuration that is planned by time; the ten minutes are
# counted from the start of the command to its end, whatever M is.
set -euo pipefail
usage="usage: bench/speedrun/run.sh INPUT.txt NAME CONFIG [--minutes M] [KEY=VALUE ...]"
input=$(realpath "${1:?$usage}") name=${2:?$usage} config=$(realpath "${3:?$usage}")
shift 3
minutes=()
if [ "${1:-}" = --minutes ]; then
  minutes=(--minutes "${2:?$usage}")
  shift 2
fi
cd "$(dirname "$0")/../.."

echo "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed  $input" | sha256sum --check --quiet || {
  echo "run.sh: $input is not tinyshakespeare as char-rnn has it (README.md says where it is)" >&2
  exit 1
}
if [ -e "runs/speedrun/$name" ]; then
  echo "run.sh: runs/speedrun/$name exists: an entry is trained in one go; take another name" >&2
  exit 1
fi
cores=0,1
given=(name="$name" folder=runs/speedrun threads=2 data.train="[$input]" data.valid_fraction=0.1 data.test_fraction=0 data.tokenizer=char)

begin=$(date +%s.%N)
env -u OPENBLAS_CORETYPE taskset -c "$cores" timeout 600 build/release/capstan train --config "$config" "${minutes[@]}" \
  --set "${given[@]}" "$@" || {
  echo "run.sh: no entry: the training failed, or had not ended after ten minutes" >&2
  exit 1
}
seconds=$(awk -v from="$begin" -v to="$(date +%s.%N)" 'BEGIN { printf "%.0f", to - from }')
env -u OPENBLAS_CORETYPE build/release/capstan eval "runs/speedrun/$name" --split valid |
  awk -v name="$name" -v seconds="$seconds" -v commit="$(git describe --always --dirty)" \
    -v cpu="$(lscpu | awk -F': *' '/^Vendor ID/ { v = $2 } /^CPU family/ { f = $2 } /^Model:/ { m = $2 } END { print v, f "/" m }')" '
    { of[$1] = $2 }
    END { printf "| %.4f | %s | %d | %s | %s |\n", of["loss"], name, seconds, commit, cpu }'
