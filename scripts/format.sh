#!/bin/bash
# clang-format over all C++ sources, in place; --check changes nothing and fails when a file is not formatted.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v clang-format >/dev/null; then
  echo "format.sh: clang-format is missing: scripts/install-deps.sh test installs it" >&2
  exit 1
fi
sources() { find apps bench core data examples models nn python run scripts serve tests train \( -name '*.cpp' -o -name '*.hpp' \) -print0; }
format() { sources | xargs -0 -P 2 -n 32 clang-format "$@"; }
if [ "${1:-}" != --check ]; then
  format -i
elif ! format --dry-run --Werror; then
  echo "format.sh: not formatted as .clang-format asks; scripts/format.sh changes the files" >&2
  exit 1
fi
