# What documents take from the tree is up to date.
. "$(dirname "$0")/support.sh"
. "$(dirname "$0")/additions.sh"

case_the_picture_of_the_architecture_is_that_of_the_table_of_arrows() {
  "$source/scripts/draw-architecture.sh" >drawn.svg
  if ! cmp drawn.svg "$source/docs/pictures/architecture.svg"; then
    echo "docs/pictures/architecture.svg is out of date: run scripts/update-docs.sh"
    return 1
  fi
  # Every room of the table is on it, kernels of a system as part of their system.
  local room
  for room in $(sed -nE 's/^([a-z_/]+):.*/\1/p' "$source/tests/arrows.txt" | sed -E 's#(/[^/]*/[^/]*)/kernels$#\1#'); do
    case $room in */*) says "<title>$room: " drawn.svg ;; esac
  done
}

case_the_tour_of_the_design_names_functions_that_are_where_it_says() {
  sed -n '/^## A token from file/,/^## Rooms/p' "$source/docs/design.md" >tour
  [ "$(grep -cE '^[0-9]+\. \*\*' tour)" -eq 10 ]
  grep -oE '\[`[A-Za-z_:]+`\]\(\.\./[a-z_/.]+\)' tour | sed -E 's/^\[`(.*)`\]\(\.\.\/(.*)\)$/\1 \2/' >stops
  [ "$(wc -l <stops)" -ge 10 ]
  local name file
  while read -r name file; do
    [ "$name" = composed ] || grep -qE "^([^ /].*\b|  [A-Z][A-Za-z]* )$name\(" "$source/$file" || { echo "$file defines no $name"; return 1; }
    [ -e "$source/$file" ]
  done <stops
}

case_paths_that_documents_name_exist() {
  local path
  (cd "$source" && git ls-files '*.md' ':!CHANGELOG.md' ':!docs/notes' | xargs grep -hoE '`(core|nn|models|data|train|run|apps|tests|scripts|bench)/[A-Za-z0-9_/.-]+`') |
    tr -d '`' | sort -u >named
  while read -r path; do
    case $path in train/pos* | train/neg | train/unsup | train/loss | train/learning_rate | train/gradient_norm | train/tokens_per_second | */TARGET | bench/results/) continue ;; esac
    compgen -G "$source/$path*" >/dev/null || { echo "no file is called $path: $(cd "$source" && git grep -l "\`$path\`" -- '*.md')"; return 1; }
  done <named
}

case_documents_render_as_they_were_meant() {
  command -v cmark-gfm >/dev/null || skip "no cmark-gfm here (scripts/install-deps.sh test)"
  cd "$source"
  git ls-files '*.md' | xargs perl tests/cli/check_documents.pl
}

# broken TEXT MESSAGE: a page with the text is refused, with the message alone
broken() {
  printf '# A heading: `its` name\n\n%b\n' "$1" >page.md
  if perl "$source/tests/cli/check_documents.pl" page.md >out; then echo "nothing found in:"; cat page.md; return 1; fi
  says "$2" out
  [ "$(wc -l <out)" -eq 1 ] || { cat out; return 1; }
}

case_each_way_of_being_broken_is_found() {
  command -v cmark-gfm >/dev/null || skip "no cmark-gfm here (scripts/install-deps.sh test)"
  broken '[it](other.md)' 'page.md:3: there is no other.md'
  broken '[it](#heading)' 'page.md has no heading #heading'
  broken 'It ends with exit code\n2. The message names the key.' 'looks like an item: 2. The message'
  broken 'There are\n- one\n- two' 'page.md:4: a list that interrupts a paragraph'
  broken 'These are there: - one\n  two - three' 'joined to a paragraph'
  broken '| a | b |\n|---|---|\n| c | d | e |' 'page.md:5: a row with 3 cells in a table of 2'
  broken 'The keys:\n| c | d |' 'page.md:4: a row outside of a table'
  broken 'predict fills <mask>' 'HTML, which is not shown: <mask>'
  broken '$$ a = b $$ and so on' 'not on a line of its own'
  broken '$$\na = b' 'does not end'
  broken 'so that\n$$\na = b\n$$' 'not a paragraph of its own'
  broken '$$\na\n= b\n\n- c\n$$' 'not a paragraph of its own'
  broken '$$\na = \\frac{1}{b\n$$' 'braces of the formula'
  broken '$$\na = \\left( b )\n$$' 'the formula has 1'
  broken 'It costs 3 $.' 'opens no formula'
  printf '# A heading: `its` name\n\n[it](#a-heading-its-name)\n\n- one\n- two\n\n| `a\\|b` | `$c` |\n|---|---|\n| 1 | |\n\n$$\n\\left( \\frac{1}{2} \\right)\n$$\n' >page.md
  perl "$source/tests/cli/check_documents.pl" page.md
}

# long_doors.sh builds them, too.
case_the_additions_of_adding_apply_and_cost_what_it_says() { add_all; }

run_cases
