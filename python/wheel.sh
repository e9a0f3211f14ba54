#!/bin/bash
# pip wheel, showing what is compiled, for build-wheel.sh and test.sh. Without progress, the minutes of a first build are silent.
#   python/wheel.sh VENV FOLDER [options of pip wheel]    writes FOLDER/capstan-*.whl
set -euo pipefail
venv=$1 folder=$2
shift 2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "compiling; a first build takes 5 to 20 minutes"
# With -v, pip shows lines such as "[12/131] Building ...".
if ! "$venv/bin/pip" wheel -v --no-build-isolation --no-deps --wheel-dir "$folder" "$@" . 2>&1 |
  tee "$log" | { grep --line-buffered -E '^ *\[[0-9]+/' || true; }; then
  tail -50 "$log"
  exit 1
fi
