#!/bin/bash
# Brings docs/configuration.md, the table of all keys, up to date with the built program.
set -euo pipefail
cd "$(dirname "$0")/.."

head=$(sed '/^| Key /,$d' docs/configuration.md)
table=$(build/release/capstan config table)
printf '%s\n\n%s\n' "$head" "$table" >docs/configuration.md
