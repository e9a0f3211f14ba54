#!/bin/bash
# Brings up to date what documents take from the tree: the tables of keys, from the built program, and the picture of the
# architecture.
set -euo pipefail
cd "$(dirname "$0")/.."

table() { # PAGE [OPTION]
  local head
  head=$(sed '/^| Key /,$d' "docs/$1.md")
  printf '%s\n\n%s\n' "$head" "$(build/release/capstan config table "${@:2}")" >"docs/$1.md"
}
table configuration
table generated-data --generated
scripts/draw-architecture.sh >docs/pictures/architecture.svg
