# Sourced by the tests of this folder. A test is a file of functions case_*, closed by `run_cases`. Each case runs in a
# shell of its own with `set -e`, in an empty folder that goes away; it fails when a command fails, and `skip why` skips it.
# $capstan is the program, $source the checkout.

source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
capstan=${CAPSTAN_PROGRAM:-$source/build/release/capstan}

# skip WHY...
skip() {
  echo "skipped: $*"
  echo "$*" >"$reason"
  exit 77
}

# says TEXT FILE: the file holds the text
says() {
  grep -qF -- "$1" "$2" && return
  echo "expected \"$1\" in:"
  cat "$2"
  return 1
}

# exits CODE COMMAND...: leaves what it wrote in the files out and err
exits() {
  local expected=$1 code=0
  shift
  "$@" >out 2>err </dev/null || code=$?
  [ "$code" -eq "$expected" ] && return
  echo "expected exit code $expected, got $code: $*"
  tail -n 20 out err
  return 1
}

run_cases() {
  local passed=0 failed=0 skipped=() name folder code reason
  if [ ! -x "$capstan" ]; then
    echo "$capstan is absent: build it first"
    exit 1
  fi
  reason=$(mktemp)  # for skip
  for name in $(declare -F | sed -n 's/^declare -f \(case_.*\)/\1/p'); do
    folder=$(mktemp -d)
    (
      set -eu
      cd "$folder"
      "$name"
    )
    code=$?
    rm -rf "$folder"
    case $code in
      0) passed=$((passed + 1)) ;;
      77) skipped+=("$name: $(<"$reason")") ;;
      *)
        failed=$((failed + 1))
        echo "FAILED: $name"
        ;;
    esac
  done
  rm "$reason"
  echo "$passed passed, $failed failed, ${#skipped[@]} skipped"
  # As the C++ test programs do (tests/support/main.cpp).
  if [ -n "${CAPSTAN_TEST_COUNTS:-}" ]; then
    printf '%s\n' "$passed $failed ${#skipped[@]}" "${skipped[@]}" >"$CAPSTAN_TEST_COUNTS"
  fi
  [ "$failed" -eq 0 ]
}
