#!/bin/bash
# build/portable/capstan_VERSION_ARCHITECTURE.deb: the program for any x86-64-v2 machine, as a Debian package.
set -euo pipefail
cd "$(dirname "$0")/.."

for tool in dpkg-shlibdeps:dpkg-dev file:file help2man:help2man; do
  command -v "${tool%:*}" >/dev/null || { echo "package.sh: ${tool%:*} is missing: install the package ${tool#*:}" >&2; exit 1; }
done
scripts/install-deps.sh
cmake --preset portable >/dev/null
cmake --build --preset portable --target capstan
cd build/portable
help2man --no-info --section=1 --name="train, compare and serve attention-free and linear-cost text models" ./capstan |
  gzip -9 --no-name >generated/capstan.1.gz
cpack -G DEB >cpack.log || { cat cpack.log >&2; exit 1; }
for package in "$PWD"/capstan_*.deb; do
  echo "$package"
done
