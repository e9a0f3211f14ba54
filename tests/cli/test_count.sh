# scripts/count.sh: the limits of the sources hold, and each of them is noticed when it does not.
. "$(dirname "$0")/support.sh"

case_the_sources_are_within_their_limits() {
  exits 0 "$source/scripts/count.sh"
}

# A small tree with the script, in which nothing is above a limit.
tree() {
  mkdir -p scripts train/loop
  for room in core nn models data train run serve apps; do
    mkdir -p "$room"
    echo 'int f();' >"$room/a.hpp"
  done
  sed 's/^most_functions=.*/most_functions=0/; s/^most_folders=.*/most_folders=0/' "$source/scripts/count.sh" >scripts/count.sh
  chmod +x scripts/count.sh
  git init -q .
  exits 0 scripts/count.sh
}

# body LINES INDENT: statements, of which some have braces
body() {
  for ((i = 0; i < $1; i += 2)); do printf '%sif (x) {\n%s}\n' "$2" "$2"; done
}

# refused TEXT [LIMIT]: the tree is above a limit, and the output names the place; alone above this one
refused() {
  exits 1 scripts/count.sh
  says "$1" out
  [ $# -lt 2 ] || [ "$(grep -c 'TOO MANY$' out)" -eq 1 ]
  grep -q "^${2:-.*} .*TOO MANY$" out || { cat out; return 1; }
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
  refused "core/long.cpp:1: 61 lines"
  sed -i '/++x/d' core/long.cpp
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
  sed -i 's/^most_words=.*/most_words=3/' scripts/count.sh
  echo 'one two three' >README.md
  echo 'four' >untracked.md
  mkdir -p bench/tables
  echo 'five' >bench/tables/a.md
  git add README.md bench
  exits 0 scripts/count.sh
  echo 'one two three four' >README.md
  refused "words of the documents" "words of the documents.*"
  rm README.md
  git rm -q --cached README.md
  sed -i 's/^most_keys=.*/most_keys=1/; s/^most_words=.*/most_words=100/' scripts/count.sh
  mkdir docs
  printf '| Key |\n|---|\n| `a` |\n' >docs/configuration.md
  git add docs
  exits 0 scripts/count.sh
  echo '| `b` |' >>docs/configuration.md
  refused "keys of docs/configuration.md" "keys of docs/configuration.md.*"
  sed -i 's/^most_keys=.*/most_keys=2/; s/^most_words_of_keys=.*/most_words_of_keys=9/' scripts/count.sh
  refused "words of docs/configuration.md" "words of docs/configuration.md.*"
  rm docs/configuration.md
  git rm -q --cached docs/configuration.md
  # Few lines in each folder and each file, many in all.
  mkdir -p apps/{1..11}
  for i in {1..11}; do for j in {1..380}; do echo "int a$j;"; done >"apps/$i/b.cpp"; done
  refused "lines of apps" "lines of apps"
  for room in core nn models data train run; do cp -r apps/{1..11} "$room"; done
  rm -r apps/{1..11}
  sed -i 's/^most_lines=.*/most_lines=25000/' scripts/count.sh
  refused "lines of C++" "lines of C++ in .*"
}

run_cases
