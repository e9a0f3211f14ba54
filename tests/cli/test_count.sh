# scripts/count.sh: the limits of files and functions hold, and each of them is noticed when it does not.
. "$(dirname "$0")/support.sh"

case_the_sources_are_within_their_limits() {
  exits 0 "$source/scripts/count.sh"
}

# A small tree with the script, in which nothing is above a limit.
tree() {
  mkdir -p scripts
  for room in core nn models data train run serve apps tests bench scripts python/capstan; do
    mkdir -p "$room"
    echo 'int f();' >"$room/a.hpp"
  done
  cp "$source/scripts/count.sh" scripts/count.sh
  git init -q .
  exits 0 scripts/count.sh
}

# body LINES INDENT: statements, of which some have braces
body() {
  for ((i = 0; i < $1; i += 2)); do printf '%sif (x) {\n%s}\n' "$2" "$2"; done
}

# refused TEXT: the tree is above a limit, and the output names the place
refused() {
  exits 1 scripts/count.sh
  says "$1" out
}

case_long_functions_of_every_form_are_found() {
  tree
  local first
  for first in 'int g(int x) {' $'int g(int x,\n      int y) {' $'template <class T>\nT g(T x) {' $'A::A(int x)\n    : x_(x),\n      y_{x} {' \
    'static const char* g(int x) noexcept {'; do
    { echo "$first"; body 60 '  '; echo '}'; } >core/long.cpp
    refused "core/long.cpp:"
  done
  for first in '  int g(int x) const override {' $'  int g(int x,\n        int y) {' $'  explicit A(int x)\n      : x_(x) {'; do
    { echo 'class A {'; echo "$first"; body 60 '    '; echo '  }'; echo '};'; } >core/long.cpp
    refused "core/long.cpp:"
  done
}

case_functions_of_sixty_lines_and_long_tables_are_allowed() {
  tree
  { echo 'int g(int x) {'; body 58 '  '; echo '  ++x;'; echo '}'; } >core/long.cpp # 61 lines with its braces
  refused "core/long.cpp:1: a function of 61 lines"
  sed -i '/++x/d' core/long.cpp
  { echo 'const int table[] = {'; for i in {1..80}; do echo "    $i,"; done; echo '};'; } >core/table.cpp
  { echo 'struct A {'; for i in {1..80}; do echo "  int a$i();"; done; echo '};'; } >core/many.hpp
  exits 0 scripts/count.sh
}

case_long_files_are_found() {
  tree
  for i in {1..401}; do echo "int a$i;"; done >core/large.cpp
  refused "core/large.cpp: a file of 401 lines"
  sed -i 1d core/large.cpp
  exits 0 scripts/count.sh
}

case_counts_above_a_limit_and_far_below_it_are_found() {
  tree
  scripts/count.sh | sed -nE 's/^(.*[^ ]) +([0-9]+)$/\2 \1/p' >counts
  cp counts scripts/limits.txt
  exits 0 scripts/count.sh
  sed -i -E 's/^1 (lines of code in core)/0 \1/' scripts/limits.txt
  refused "lines of code in core: 1, limit 0"
  sed -E 's/^1 (lines of code in core)/400 \1/' counts >scripts/limits.txt
  refused "lines of code in core: 1, limit 400; lower it"
  exits 0 scripts/count.sh --lower
  grep -qE '^1 +lines of code in core$' scripts/limits.txt
  grep -v "in core" counts >scripts/limits.txt
  refused "no limit for lines of code in core"
}

case_files_of_two_subjects_are_found() {
  tree
  printf 'namespace {\n}\n\nnamespace {\n}\n' >core/two.cpp
  refused "core/two.cpp:4: a second anonymous namespace"
  rm core/two.cpp
  printf 'namespace a {\nint f();\n\n// Others.\n\nint g();\n}\n' >core/two.hpp
  refused "core/two.hpp:4: a heading"
  sed -i 5d core/two.hpp
  exits 0 scripts/count.sh
}

case_lines_of_code_are_neither_blank_nor_comments() {
  tree
  printf '// A comment.\n\nint g();  // not only a comment\n  // Another.\n' >core/b.hpp
  exits 0 scripts/count.sh
  grep -qE '^lines of code in core +2$' out || { cat out; return 1; }
}

run_cases
