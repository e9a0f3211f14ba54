#!/bin/bash
# Counts what the sources may not exceed, and fails at each number above its limit.
#   scripts/count.sh          the table of counts, and the offending places
cd "$(dirname "$0")/.."
failed=0

# limit NAME FOUND MOST: a line of the table
limit() {
  local verdict=
  if [ "$2" -gt "$3" ]; then verdict="  TOO MANY"; failed=1; fi
  printf '%-52s %7d of %7d%s\n' "$1" "$2" "$3" "$verdict"
}

# places NAME MOST: how many lines standard input has; shows them if there are more than MOST
places() {
  local found
  found=$(cat)
  limit "$1" "$(grep -c . <<<"$found")" "$2"
  if [ "$(grep -c . <<<"$found")" -gt "$2" ]; then sed 's/^/    /' <<<"$found"; fi
}

sources() { find "$@" \( -name '*.cpp' -o -name '*.hpp' \) | sort; }
rooms=(core nn models data train run apps)

limit "lines of apps" "$(sources apps | xargs cat | wc -l)" 4000
limit "lines of C++ in ${rooms[*]}" "$(sources "${rooms[@]}" | xargs cat | wc -l)" 54100

sources "${rooms[@]}" | xargs wc -l | awk '$2 != "total" && $1 > 400 { print $2 ": " $1 " lines" }' | places "files of more than 400 lines" 0

# A function begins with a line that ends in ") {" or the like, at the margin or, in a class, at two blanks; it ends with a brace
# in the same column. The sources are formatted, so braces of its body are further to the right.
sources "${rooms[@]}" | xargs awk '
  function opens(line) { return line ~ /[^ ].*\{$/ && line !~ /^ *(namespace|class|struct|union|enum|extern|template <[^>]*>$)/ && line ~ /\(/ && line !~ /= *\{$/ }
  FNR == 1 { begin = 0; signature = 0 }
  begin == 0 && /^[A-Za-z~]/ && !opens($0) && /\(/ && !/[;{}]$/ { signature = FNR; column = 0; next }
  begin == 0 && signature > 0 && /\) (const |noexcept |override |-> [^{]* )*\{$/ { begin = signature; signature = 0; next }
  begin == 0 && signature > 0 && /[;}]$/ { signature = 0 }
  begin == 0 && /^[A-Za-z~]/ && opens($0) { begin = FNR; column = 0; next }
  begin == 0 && /^  [A-Za-z~]/ && opens($0) { begin = FNR; column = 2; next }
  begin > 0 && ((column == 0 && /^\}/) || (column == 2 && /^  \}/)) {
    if (FNR - begin + 1 > 60) print FILENAME ":" begin ": " FNR - begin + 1 " lines"
    begin = 0
  }' | places "functions of more than 60 lines" 1

grep -rn 'std::cout' core nn models data train run | places "std::cout outside apps" 0
grep -rn '\balone()' train/loop | places "alone() in the loop" 0
grep -rn 'in_\.solve\|set_text(' core nn models data train run apps | places "in_.solve and set_text(" 0

find "${rooms[@]}" -type d | sort | while read -r folder; do
  files=$(find "$folder" -maxdepth 1 \( -name '*.cpp' -o -name '*.hpp' \) | wc -l)
  lines=$(find "$folder" -maxdepth 1 \( -name '*.cpp' -o -name '*.hpp' \) -print0 | xargs -0 -r cat | wc -l)
  if [ "$files" -gt 25 ] || [ "$lines" -gt 3000 ]; then echo "$folder: $files files, $lines lines"; fi
done | places "folders of more than 25 files or 3,000 lines" 2

exit $failed
