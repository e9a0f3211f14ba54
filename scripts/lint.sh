#!/bin/bash
# Format and clang-tidy (.clang-tidy says which checks, and which not and why). Nothing is changed; exit code 0 when all is clean.
#   scripts/lint.sh            the files this branch changed (scripts/changed-files.sh)
#   scripts/lint.sh FILE...    these
#   scripts/lint.sh --all      every source, with the headers it includes: more than half an hour on 2 cores
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v clang-tidy >/dev/null; then
  echo "lint.sh: clang-tidy is missing: scripts/install-deps.sh develop installs it" >&2
  exit 1
fi
status=0
scripts/format.sh --check || status=1

case ${1:-} in
  --all) mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.cpp') ;;
  -*)
    sed -n '3,5s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
  "") mapfile -t files < <(scripts/changed-files.sh | grep -E '\.[ch]pp$' || true) ;;
  *) files=("$@") ;;
esac
if [ ${#files[@]} -eq 0 ]; then
  echo "clang-tidy: no C++ file has changed"
  exit $status
fi

# A configuration that is never built: each test source by itself, and no precompiled headers, which are GCC's.
cmake --preset release -B build/lint -DCAPSTAN_BATCHES=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
python3 scripts/lint_database.py build/lint/compile_commands.json build/lint/clang/compile_commands.json
options=(
  --quiet -p build/lint/clang
  --extra-arg=-Wno-inline-namespace-reopened-noninline  # namespace capstan::CAPSTAN_PRECISION { ... }
  # <omp.h> is GCC's, since clang's own is a package more. What of GCC 12 clang 14 does not know: the attribute malloc(free), and
  # levels of x86-64 as names of features.
  "--extra-arg=-idirafter$(g++ -print-file-name=include)" '--extra-arg=-D__malloc__(...)='
  '--extra-arg=-D__builtin_cpu_supports(name)=0'
)
echo "clang-tidy: ${#files[@]} files"
# What it says on stderr are counts of warnings in the headers of others.
printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 1 clang-tidy "${options[@]}" 2>build/lint/stderr || status=1
if [ $status -ne 0 ]; then
  grep -E "^(error|Error)" build/lint/stderr >&2 || true
  echo "lint.sh: FAILED" >&2
fi
exit $status
