#!/bin/bash
# Counts what the sources and documents may not exceed, and fails at each number above its limit.
#   scripts/count.sh          the table of counts, and the offending places
cd "$(dirname "$0")/.."

# What is above its final limit at present: 52500 lines, of which exports, slim copies, explanations and stopping took 2,500, and the
# server 3,400.
most_lines=65350
most_words=40000
most_keys=200
most_words_of_keys=5000
most_functions=0
most_folders=0

# limit NAME FOUND MOST: a line of the table
limit() {
  local verdict=
  if [ "$2" -gt "$3" ]; then verdict="  TOO MANY"; fi
  printf '%-52s %7d of %7d%s\n' "$1" "$2" "$3" "$verdict"
}

# places NAME MOST: how many lines standard input has, and these lines
places() {
  local found
  found=$(cat)
  limit "$1" "$(grep -c . <<<"$found")" "$2"
  if [ -n "$found" ]; then sed 's/^/    /' <<<"$found"; fi
}

sources() { find "$@" \( -name '*.cpp' -o -name '*.hpp' \) | sort; }
rooms=(core nn models data train run serve apps)

counts() {
limit "lines of apps" "$(sources apps | xargs cat | wc -l)" 4000
limit "lines of C++ in ${rooms[*]}" "$(sources "${rooms[@]}" | xargs cat | wc -l)" "$most_lines"

limit "words of the documents, without bench/tables" "$(git ls-files '*.md' ':!bench/tables' | xargs cat | wc -w)" "$most_words"

# Of the table, which prints a struct that several keys share once. A test compares it with the program's.
limit "keys of docs/configuration.md" "$(git ls-files docs/configuration.md | xargs -r grep -c '^| `')" "$most_keys"
limit "words of docs/configuration.md" "$(git ls-files docs/configuration.md | xargs -r cat | wc -w)" "$most_words_of_keys"

sources "${rooms[@]}" | xargs wc -l | awk '$2 != "total" && $1 > 400 { print $2 ": " $1 " lines" }' | places "files of more than 400 lines" 0

# A function begins at the margin or, in a class, at two blanks, with a line that has a parenthesis. Its body is from the first line that
# ends in a brace to the brace in the same column. The sources are formatted, so all braces of the body are further right.
sources "${rooms[@]}" | xargs awk '
  FNR == 1 { state = 0 }
  state == 0 && /^(  )?[A-Za-z~\[]/ && /\(/ && !/^ *(namespace|class|struct|union|enum|if|for|while|switch|return|using|static_assert)[ (]/ &&
      !/[;}]$/ && !/= *\{$/ { column = match($0, /[^ ]/) - 1; state = 1 }
  state == 1 && / \{$/ { begin = FNR; state = 2; next }
  state == 1 && /[;}]$/ { state = 0 }
  state == 2 && ((column == 0 && /^\}/) || (column == 2 && /^  \}/)) {
    if (FNR - begin + 1 > 60) print FILENAME ":" begin ": " FNR - begin + 1 " lines"
    state = 0
  }' | places "functions of more than 60 lines" "$most_functions"

grep -rn 'std::cout' core nn models data train run serve | places "std::cout outside apps" 0
grep -rn '\balone()' train/loop | places "alone() in the loop" 0
grep -rn 'in_\.solve\|set_text(' core nn models data train run serve apps | places "in_.solve and set_text(" 0

find "${rooms[@]}" -type d | sort | while read -r folder; do
  files=$(find "$folder" -maxdepth 1 \( -name '*.cpp' -o -name '*.hpp' \) | wc -l)
  lines=$(find "$folder" -maxdepth 1 \( -name '*.cpp' -o -name '*.hpp' \) -print0 | xargs -0 -r cat | wc -l)
  if [ "$files" -gt 25 ] || [ "$lines" -gt 3000 ]; then echo "$folder: $files files, $lines lines"; fi
done | places "folders of more than 25 files or 3,000 lines" "$most_folders"
}

# The verdict is read from the table: the parts of a pipe run in shells of their own, which cannot set a variable here.
table=$(counts)
printf '%s\n' "$table"
! grep -q '  TOO MANY$' <<<"$table"
