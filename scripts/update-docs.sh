#!/bin/bash
# Brings up to date what documents take from the tree: the tables of keys, from the built program, and the picture of the
# architecture.
set -euo pipefail
cd "$(dirname "$0")/.."

head=$(sed '/^| Key /,$d' docs/configuration.md)
printf '%s\n\n%s\n' "$head" "$(build/release/capstan config table)" >docs/configuration.md
scripts/draw-architecture.sh >docs/pictures/architecture.svg
