#!/bin/bash
# What an ARM64 build on another machine needs (cmake --preset arm64): Debian's cross compiler and qemu on this system, as
# root or through sudo, and Debian 12's packages for ARM64 in build/arm64-root, which no package of this system sees.
#   scripts/install-arm64.sh
set -euo pipefail
cd "$(dirname "$0")/.."

as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
missing=()
for package in g++-aarch64-linux-gnu qemu-user-static mmdebstrap cmake ninja-build; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  "${as_root[@]}" apt-get update
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
fi

root=build/arm64-root
if [ -e "$root/usr/include/python3.11" ]; then exit 0; fi
packages=(
  libc6-dev libstdc++-12-dev libgcc-12-dev libgomp1
  libxtensor-dev libxsimd-dev libopenblas-openmp-dev libxtensor-blas-dev librandom123-dev
  libcli11-dev libspdlog-dev libyaml-cpp-dev nlohmann-json3-dev libfmt-dev
  zlib1g-dev libzstd-dev libsentencepiece-dev libutf8proc-dev libxxhash-dev libboost-dev doctest-dev
  libpython3.11-dev python3.11 python3-numpy  # python/build-wheel-arm64.sh
)
mkdir -p build
rm -rf "$root" "$root.part"
(IFS=,; mmdebstrap --variant=extract --architectures=arm64 --include="${packages[*]}" bookworm "$root.part")
rm -rf "$root.part/dev"  # qemu would show it in place of the system's own
mv "$root.part" "$root"
