#!/bin/bash
# Installs Debian 12 packages, as root or through sudo. Does nothing when all of them are installed.
#   scripts/install-deps.sh          what Capstan and its tests are built from
#   scripts/install-deps.sh test     also clang-format and cmark-gfm, for the checks of sources and documents in scripts/test.sh
#   scripts/install-deps.sh fuzz     what tests are built from, and clang with its sanitizers, for scripts/fuzz.sh
#   scripts/install-deps.sh python   what tests are built from, and what `pip install .` needs of Python (docs/python.md)
#   scripts/install-deps.sh develop  also clang-tidy (scripts/lint.sh), doxygen (target docs), clang with its OpenMP library
#                                    (scripts/test.sh --threads), and mold and Python (scripts/mutate.py), for developers
set -euo pipefail

purpose=${1:-build}
case $purpose in build | test | fuzz | python | develop) ;; *)
  sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac

packages=(
  g++ cmake ninja-build ccache       # the tools
  libxtensor-dev libxsimd-dev        # tensors and SIMD
  libopenblas-openmp-dev             # matrix products; before libxtensor-blas-dev, so that apt picks no second BLAS
  libxtensor-blas-dev
  libdnnl-dev                        # faster products of floats (oneDNN); may be missing
  libopenmpi-dev openmpi-bin         # training on several machines (libcapstan_mpi.so); may be missing
  librandom123-dev                   # counter-based random numbers
  libcli11-dev libspdlog-dev libyaml-cpp-dev nlohmann-json3-dev libfmt-dev
  zlib1g-dev libzstd-dev             # .gz, .zst
  libsentencepiece-dev libutf8proc-dev  # tokenizers
  libxxhash-dev                      # fingerprints
  libboost-dev                       # the server (Beast, headers only); may be missing
  doctest-dev                        # tests
)
if [ "$purpose" = test ] || [ "$purpose" = develop ]; then packages+=(clang-format cmark-gfm); fi
if [ "$purpose" = fuzz ]; then packages+=(clang-14 libclang-rt-14-dev libomp-14-dev); fi
if [ "$purpose" = python ] || [ "$purpose" = develop ]; then packages+=(python3-dev python3-pip python3-venv); fi
# python3: scripts/lint_database.py
if [ "$purpose" = develop ]; then packages+=(clang-tidy doxygen python3 clang-14 libclang-rt-14-dev libomp-14-dev mold); fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install-deps.sh: not root, and sudo is not installed. As root, run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "Installing: ${missing[*]}"
# The output of apt goes to a log, which is shown only after a failure.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get update &&
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } \
  >"$log" 2>&1 </dev/null; then
  tail -n 25 "$log" >&2
  echo "install-deps.sh: apt-get failed (its last lines are above)" >&2
  exit 1
fi
