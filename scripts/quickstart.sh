#!/bin/bash
# From a fresh clone on a fresh Debian 12 to a trained language model: installs the packages, builds the program, trains
# on this checkout's own text, evaluates the model on held-out files, and generates text.
# About 6 minutes on 2 cores. Started again, it continues where it stopped.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

step "1/5 packages"
scripts/install-deps.sh

step "2/5 build (build/release/capstan)"
cmake --preset release >/dev/null
cmake --build --preset release --target capstan
capstan=build/release/capstan

step "3/5 train: $capstan train --config configs/quickstart-lm.yaml"
"$capstan" train --config configs/quickstart-lm.yaml

step "4/5 held-out files: $capstan eval runs/quickstart-lm"
"$capstan" eval runs/quickstart-lm

step "5/5 a sample: $capstan generate runs/quickstart-lm --prompt '/// Throws Error when the ' ..."
"$capstan" generate runs/quickstart-lm --prompt '/// Throws Error when the ' --tokens 220 --temperature 0.6 --top-k 40 --seed 1
cat <<'TEXT'


== What next
your own text     build/release/capstan train --config configs/quickstart-lm.yaml --set data.train=[my/folder] --set name=mine
your own labels   build/release/capstan train --config configs/classify.yaml --set data.train=[train.tsv] data.test=[test.tsv]
a classifier      build/release/capstan train --config configs/quickstart-classifier.yaml
all keys          docs/configuration.md; every file of configs/ has comments
the tests         scripts/test.sh
TEXT
