# What documents take from the tree is up to date.
. "$(dirname "$0")/support.sh"

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
    [ "$name" = composed ] || grep -qE "^[^ /].*\b$name\(" "$source/$file" || { echo "$file defines no $name"; return 1; }
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

case_files_that_documents_link_to_exist() {
  local file link
  (cd "$source" && git ls-files '*.md' | xargs grep -oE '\]\([^) ]+\)') | sed -E 's/:\]\(/ /; s/\)$//; s/#.*//' >links
  [ "$(wc -l <links)" -gt 200 ]
  while read -r file link; do
    case $link in http* | "") continue ;; esac
    [ -e "$source/$(dirname "$file")/$link" ] || { echo "$file: there is no $link"; return 1; }
  done <links
}

run_cases
