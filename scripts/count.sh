#!/bin/bash
# Counts the sources and documents, and fails at files of more than 400 lines, functions of more than 60, files of two subjects, and
# counts that leave the range of scripts/limits.txt: above a limit, or so far below it that the limit should be lowered in the same change.
#   scripts/count.sh            the table of counts, then what is wrong
#   scripts/count.sh --lower    writes the counts into scripts/limits.txt where they are lower
cd "$(dirname "$0")/.."

rooms=(core nn models data train run serve apps)
max_lines=400      # of a file
max_function=60    # lines of a function

sources() { find "$@" -type f \( -name '*.cpp' -o -name '*.hpp' \) | sort; }

# Lines that are neither blank nor only a comment.
code() { sources "$@" | xargs -r cat | grep -cvE '^[[:space:]]*(//.*)?$'; }

# The same of programs in Python and Bash, too.
scripts_code() {
  find "$@" -type f \( -name '*.py' -o -name '*.sh' \) | sort | xargs -r cat | grep -cvE '^[[:space:]]*(#.*)?$'
}

words() { git ls-files "$@" | xargs -r cat | wc -w; }

counts=()  # "NUMBER NAME"
row() {
  printf '%-52s %7d\n' "$1" "$2"
  counts+=("$2 $1")
}

# How far a count may be below its limit.
slack() {
  case $1 in keys*) echo 5 ;; *) echo 300 ;; esac
}

outside_limits() {
  local count limit name
  [ -e scripts/limits.txt ] || return 0
  for count in "${counts[@]}"; do
    name=${count#* } count=${count%% *}
    limit=$(sed -nE "s/^([0-9]+) +$name\$/\1/p" scripts/limits.txt)
    if [ -z "$limit" ]; then
      echo "scripts/limits.txt: no limit for $name"
    elif [ "$count" -gt "$limit" ]; then
      echo "scripts/limits.txt: $name: $count, limit $limit; pay for new lines by what they replace, or say in CHANGELOG.md what they buy"
    elif [ "$count" -lt $((limit - $(slack "$name"))) ]; then
      echo "scripts/limits.txt: $name: $count, limit $limit; lower it (scripts/count.sh --lower)"
    fi
  done
}

lower() {
  local count name limit
  for count in "${counts[@]}"; do
    name=${count#* } count=${count%% *}
    limit=$(sed -nE "s/^([0-9]+) +$name\$/\1/p" scripts/limits.txt)
    if [ -n "$limit" ] && [ "$count" -lt "$limit" ]; then sed -i -E "s/^$limit +($name)\$/$(printf '%-6d' "$count") \1/" scripts/limits.txt; fi
  done
}

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
row "lines of code in the product" "$(code "${rooms[@]}")"
row "lines of code in tests" "$(code tests)"
row "lines of code in bench and scripts" $(($(code bench scripts) + $(scripts_code bench scripts)))
row "lines of code in the Python package" "$(scripts_code python/capstan)"
row "words of the documents" "$(words '*.md' ':!bench/tables/records')"
row "words of the records" "$(words 'bench/tables/records/*.md')"
# Of the table, which prints a struct that several keys share once. A test compares it with the program's.
row "keys" "$(git ls-files docs/configuration.md | xargs -r grep -c '^| `')"

if [ "${1:-}" = --lower ]; then lower; fi
found=$(long_files; long_functions; joined_files; headings; outside_limits)
if [ -n "$found" ]; then
  printf '%s\n' "$found"
  exit 1
fi
