#!/bin/bash
# clang-format over all C++ sources, in place; --check changes nothing and fails when a file is not formatted.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v clang-format >/dev/null; then
  echo "format.sh: clang-format is missing: install the package clang-format" >&2
  exit 1
fi
mode=(-i)
if [ "${1:-}" = --check ]; then mode=(--dry-run --Werror); fi
find apps bench core data examples models nn tests train \( -name '*.cpp' -o -name '*.hpp' \) -print0 2>/dev/null |
  xargs -0 clang-format "${mode[@]}"
