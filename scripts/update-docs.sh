#!/bin/bash
# Brings up to date what documents take from the tree: docs/configuration.md, the table of all keys, from the built program, and the
# picture of the architecture.
set -euo pipefail
cd "$(dirname "$0")/.."

head=$(sed '/^| Key /,$d' docs/configuration.md)
table=$(build/release/capstan config table)
printf '%s\n\n%s\n' "$head" "$table" >docs/configuration.md
scripts/draw-architecture.sh >docs/pictures/architecture.svg
