#!/bin/bash
# From a fresh clone to a tested build: packages, build/release, every test program in both precisions.
# Closes with one line: N passed, N failed, N skipped. Exit code 0 only when every program ran and nothing failed.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install-deps.sh
cmake --preset release
cmake --build --preset release
scripts/run-tests.sh build/release -LE long
