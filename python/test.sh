#!/bin/bash
# Builds the Python package in a virtual environment (build/python-venv) and runs its tests; some compare bits with the program
# of build/release. Without a suitable Python, it prints a message and succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || [ -z "$(command -v python3-config)" ]; then
  echo "python/test.sh: skipped: needs Python 3.10 or later with its headers: scripts/install-deps.sh python"
  exit 0
fi
unset PYTHONPATH  # pip would take a package that is there for installed
venv=build/python-venv
python3 -m venv "$venv"
if ! "$venv/bin/pip" install --quiet "scikit-build-core>=0.11" "nanobind>=2.7" pytest mypy scikit-learn pandas pyyaml fastapi; then
  echo "python/test.sh: skipped: the packages of the tests cannot be installed"
  exit 0
fi
"$venv/bin/pip" install --quiet polars datasets matplotlib nbclient ipykernel || echo "python/test.sh: without these, their tests are skipped"
rm -rf build/python-wheel
python/wheel.sh "$venv" build/python-wheel
"$venv/bin/pip" install --quiet --force-reinstall --no-deps build/python-wheel/capstan-*.whl
export CAPSTAN_WHEEL=$(echo "$PWD"/build/python-wheel/capstan-*.whl)
if [ -x build/release/capstan ]; then export CAPSTAN_PROGRAM=$PWD/build/release/capstan; fi
cd python/tests
exec "../../$venv/bin/python" -m pytest -q "$@"
