# scripts/count.sh: the limits of the sources hold, and each of them is noticed when it does not.
. "$(dirname "$0")/support.sh"

case_the_sources_are_within_their_limits() {
  exits 0 "$source/scripts/count.sh"
}

# A small tree with the script, in which nothing is above a limit.
tree() {
  mkdir -p scripts train/loop
  for room in core nn models data train run apps; do
    mkdir -p "$room"
    echo 'int f();' >"$room/a.hpp"
  done
  sed 's/^most_functions=.*/most_functions=0/; s/^most_folders=.*/most_folders=0/' "$source/scripts/count.sh" >scripts/count.sh
  chmod +x scripts/count.sh
  exits 0 scripts/count.sh
}

# body LINES INDENT: statements, of which some have braces
body() {
  for ((i = 0; i < $1; i += 2)); do printf '%sif (x) {\n%s}\n' "$2" "$2"; done
}

# refused TEXT: the tree is above a limit, and the output names the place
refused() {
  exits 1 scripts/count.sh
  says "TOO MANY" out
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
  { echo 'int g(int x) {'; body 58 '  '; echo '}'; } >core/long.cpp # 60 lines with its braces
  { echo 'const int table[] = {'; for i in {1..80}; do echo "    $i,"; done; echo '};'; } >core/table.cpp
  { echo 'struct A {'; for i in {1..80}; do echo "  int a$i();"; done; echo '};'; } >core/many.hpp
  exits 0 scripts/count.sh
}

case_each_other_limit_is_noticed() {
  tree
  for i in {1..401}; do echo "int a$i;"; done >core/large.cpp
  refused "core/large.cpp: 401 lines"
  rm core/large.cpp
  echo 'std::cout << 1;' >run/prints.cpp
  refused "run/prints.cpp:1"
  mv run/prints.cpp apps/ && exits 0 scripts/count.sh
  echo 'if (ranks.alone()) return;' >train/loop/ranks.cpp
  refused "train/loop/ranks.cpp:1"
  rm train/loop/ranks.cpp
  echo 'if (in_.solve) set_text(x);' >models/solve.cpp
  refused "models/solve.cpp:1"
  rm models/solve.cpp
  for i in {1..25}; do echo 'int a;' >"data/a$i.cpp"; done
  refused "data: 26 files"
  rm data/a*.cpp
  for i in {1..11}; do for j in {1..380}; do echo "int a$j;"; done >"apps/b$i.cpp"; done
  refused "apps: "
  says "lines of apps" out
}

run_cases
