#!/bin/bash
# Counts the sources and documents, and fails at files of more than 400 lines and functions of more than 60.
#   scripts/count.sh          the table of counts, then the offending places
cd "$(dirname "$0")/.."

rooms=(core nn models data train run serve apps)
max_lines=400      # of a file
max_function=60    # lines of a function

sources() { find "$@" \( -name '*.cpp' -o -name '*.hpp' \) | sort; }

# Lines that are neither blank nor only a comment.
code() { sources "$@" | xargs -r cat | grep -cvE '^[[:space:]]*(//.*)?$'; }

row() { printf '%-52s %7d\n' "$1" "$2"; }

# A function begins at the margin or, in a class, at two blanks, with a line that has a parenthesis. Its body is from the first line that
# ends in a brace to the brace in the same column. The sources are formatted, so all braces of the body are further right.
long_functions() {
  sources "${rooms[@]}" | xargs awk -v most="$max_function" '
    FNR == 1 { state = 0 }
    state == 0 && /^(  )?[A-Za-z~\[]/ && /\(/ && !/^ *(namespace|class|struct|union|enum|if|for|while|switch|return|using|static_assert)[ (]/ &&
        !/[;}]$/ && !/= *\{$/ { column = match($0, /[^ ]/) - 1; state = 1 }
    state == 1 && / \{$/ { begin = FNR; state = 2; next }
    state == 1 && /[;}]$/ { state = 0 }
    state == 2 && ((column == 0 && /^\}/) || (column == 2 && /^  \}/)) {
      if (FNR - begin + 1 > most) print FILENAME ":" begin ": a function of " FNR - begin + 1 " lines, more than " most
      state = 0
    }'
}

long_files() {
  sources "${rooms[@]}" | xargs wc -l | awk -v most="$max_lines" \
    '$2 != "total" && $1 > most { print $2 ": a file of " $1 " lines, more than " most }'
}

# A .cpp file with two anonymous namespaces holds two subjects.
joined_files() {
  sources "${rooms[@]}" | grep '\.cpp$' | xargs awk '
    FNR == 1 { spaces = 0 }
    /^namespace \{/ && ++spaces == 2 { print FILENAME ":" FNR ": a second anonymous namespace; cut the file by subject" }'
}

# A comment at the margin between blank lines, below the first declaration of a header, is the heading of another subject.
headings() {
  sources "${rooms[@]}" | grep '\.hpp$' | xargs awk '
    FNR == 1 { body = 0; begin = 0 }
    /^namespace/ { body = 1 }
    body && /^\/\/( |$)/ { if (!begin) begin = FNR; next }
    begin && /^$/ { print FILENAME ":" begin ": a heading of a second subject; cut the header by subject" }
    { begin = 0 }'
}

for room in "${rooms[@]}"; do row "lines of code in $room" "$(code "$room")"; done
row "lines of code in all" "$(code "${rooms[@]}")"
row "files" "$(sources "${rooms[@]}" | wc -l)"
row "files of fewer than 40 lines" "$(sources "${rooms[@]}" | xargs wc -l | awk '$2 != "total" && $1 < 40' | wc -l)"
[ ! -d tests ] || row "lines of code in tests" "$(code tests)"
row "words of the documents, without bench/tables" "$(git ls-files '*.md' ':!bench/tables' | xargs -r cat | wc -w)"
# Of the table, which prints a struct that several keys share once. A test compares it with the program's.
row "keys of docs/configuration.md" "$(git ls-files docs/configuration.md | xargs -r grep -c '^| `')"

found=$(long_files; long_functions; joined_files; headings)
if [ -n "$found" ]; then
  printf '%s\n' "$found"
  exit 1
fi
