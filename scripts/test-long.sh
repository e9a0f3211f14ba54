#!/bin/bash
# What takes too long for every change: clang-tidy over all files (scripts/lint.sh --all); the API documentation; the whole suite under
# AddressSanitizer and UndefinedBehaviorSanitizer (any report fails the test that caused it); ThreadSanitizer (scripts/test-threads.sh);
# the tests labelled `long` with the release build, among them training that is killed, whose system calls fail and whose power is lost
# (scripts/attack.sh does more of the same); the Python package (python/test.sh, where packages can be installed); exports in other programs (scripts/test-interop.sh); a minute of the
# fuzzers (scripts/fuzz.sh); and the portable build: all tests with the best kernels, those of core and nn with the
# kernels of each level; and the ARM64 build under qemu (scripts/test-arm64.sh, where its tools are installed).
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install-deps.sh develop
status=0
echo "== lint"
scripts/lint.sh --all || status=1

cmake --preset release
echo "== API documentation"
cmake --build --preset release --target docs || status=1

cmake --preset asan
cmake --build --preset asan
# Without detect_stack_use_after_return: the stack that GCC 12 puts in its place is aligned to 32 bytes, and 512-bit registers that are
# spilled to it end the program (seen in transpose_block of nn/systems/quadratic/kernels/tile.cpp).
# allocator_may_return_null: tests ask for memory that no system has.
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:check_initialization_order=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
echo "== sanitizers"
scripts/run-tests.sh build/asan -LE long || status=1

echo "== threads"
scripts/test-threads.sh || status=1

cmake --build --preset release
echo "== long tests"
scripts/run-tests.sh build/release -L long || status=1

echo "== Python package"
python/test.sh || status=1
echo "== other programs"
scripts/test-interop.sh || status=1

echo "== fuzzers"
scripts/fuzz.sh 1 || status=1

cmake --preset portable
cmake --build --preset portable
echo "== portable build"
scripts/run-tests.sh build/portable -LE long || status=1

echo "== ARM64"
scripts/test-arm64.sh || status=1
exit $status
