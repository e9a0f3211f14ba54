#!/bin/bash
# A wheel for ARM64 Linux with Python 3.11 from another machine, and what it does under qemu's emulation. It needs Debian 12's libraries
# on the machine where it is installed. Skipped with a message where scripts/install-arm64.sh has not been run.
#   python/build-wheel-arm64.sh [FOLDER]        writes FOLDER/capstan-*-linux_aarch64.whl (default: build/wheel)
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD/build/arm64-root
if [ ! -e "$root/usr/include/python3.11" ]; then
  echo "wheel for ARM64: skipped: there is no $root/usr/include/python3.11; scripts/install-arm64.sh installs it"
  exit 0
fi
unset PYTHONPATH  # pip would take a package that is there for installed
folder=${1:-build/wheel}
venv=build/wheel-venv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet "scikit-build-core>=0.11" "nanobind>=2.7"

# Python's headers and the names of the module and the wheel are those of the other machine.
export _PYTHON_HOST_PLATFORM=linux-aarch64 SETUPTOOLS_EXT_SUFFIX=.cpython-311-aarch64-linux-gnu.so
nanobind=$(realpath "$("$venv/bin/python" -m nanobind --cmake_dir)")
python/wheel.sh "$venv" "$work" -C cmake.define.CMAKE_TOOLCHAIN_FILE="$PWD/cmake/arm64.cmake" -C cmake.define.CAPSTAN_ONEDNN=OFF \
  -C cmake.define.nanobind_DIR="$nanobind" -C cmake.define.Python_INCLUDE_DIR="$root/usr/include/python3.11" \
  -C build-dir=build/python-arm64 -C install.strip=false
mkdir -p "$folder"
cp "$work"/capstan-*.whl "$folder"

# It trains and predicts in the emulator.
unzip -q "$work"/capstan-*.whl -d "$work/site"
cat >"$work/try.py" <<'PYTHON'
import sys
import capstan
with open(f"{sys.argv[1]}/texts.tsv", "w") as file:
    file.write("good\ta fine film\nbad\ta dull film\ngood\tfine acting\nbad\tdull acting\n" * 30)
run = capstan.train("classify", data={"train": f"{sys.argv[1]}/texts.tsv", "test": []}, folder=sys.argv[1], quiet=True)
print("capstan", capstan.__version__, run.predict(["a fine day", "a dull day"]))
PYTHON
# Debian's alternatives are not set in the folder: NumPy would not find its BLAS.
PYTHONPATH=$work/site qemu-aarch64-static -L "$root" -E LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu/openblas-openmp \
  "$root/usr/bin/python3.11" "$work/try.py" "$work"
