# Sourced by the tests that make the additions of docs/adding.md (an op, a mixer, a type of model, a subcommand, ...) in a copy of
# the tree: the code of each section is applied to it.
#
# The first line of a code block says where it goes:
#   // PATH (new)               the rest of the block is the file
#   # PATH (copy of OTHER)      the file is a copy of another, which includes the headers of its folder by their path
#   // PATH, below `TEXT`       below the one line that holds TEXT; or above it
#   // PATH, before `TEXT`      within that line, in front of TEXT

tree=$(mktemp -d)/tree
trap 'rm -rf "$(dirname "$tree")"' EXIT

# blocks SECTION: the code blocks of "## SECTION" in docs/adding.md that say where they go, as the files 1, 2, ...
blocks() {
  awk -v section="## $1" '
    /^## / { inside = $0 == section }
    inside && /^```/ { open = !open; first = open; next }
    inside && open && first { first = 0; used = /^(\/\/|#) [^ ]+( \((new|copy of .*)\)|, (above|below|before) `.*`)$/; if (used) ++n }
    inside && open && used { print > n }
  ' "$source/docs/adding.md"
}

# apply BLOCK: changes the tree as the block says; adds "new" or "edit PATH LINES" to the file cost
apply() {
  local head path anchor how
  head=$(sed -n '1s/^[^ ]* //p' "$1")
  sed 1d "$1" >text
  path=${head%%[ ,]*}
  case $head in
    *"(new)" | *"(copy of "*)
      test ! -e "$tree/$path" || { echo "$path is not new"; return 1; }
      how=${head#*(copy of } how=${how%)}
      if [ "$how" != "$head" ] && [ -e "$tree/$how" ]; then sed "s|^#include \"\([a-z_]*\.hpp\)\"|#include \"${path%/*}/\1\"|" "$tree/$how" >text; fi
      mkdir -p "$tree/${path%/*}"
      cp text "$tree/$path"
      echo "new" >>cost
      return
      ;;
  esac
  how=${head#*, } how=${how%% *}
  anchor=${head#*\`} anchor=${anchor%\`}
  if [ "$(grep -cF -- "$anchor" "$tree/$path")" -ne 1 ]; then
    echo "$path should have exactly one line with: $anchor"
    return 1
  fi
  HOW=$how ANCHOR=$anchor awk '
    NR == FNR { text = text (NR > 1 ? "\n" : "") $0; next }
    (at = index($0, ENVIRON["ANCHOR"])) == 0 { print; next }
    ENVIRON["HOW"] == "below" { print; print text; next }
    ENVIRON["HOW"] == "above" { print text; print; next }
    { print substr($0, 1, at - 1) text " " substr($0, at) }
  ' text "$tree/$path" >changed
  cp changed "$tree/$path"
  echo "edit $path $(wc -l <text)" >>cost
}

# add SECTION: a copy of the tree with the addition, whose cost must be what the section says
add() {
  if [ ! -e "$tree" ]; then
    mkdir "$tree"
    (cd "$source" && git ls-files -z | xargs -0 cp -P --parents -t "$tree")
  fi
  blocks "$1"
  test -e 1 || { echo "docs/adding.md has no code under \"## $1\" that says where it goes"; return 1; }
  : >cost
  local block=1
  while [ -e "$block" ]; do
    apply "$block" || return 1
    block=$((block + 1))
  done
  local said
  said=$(awk '
    $1 == "new" { ++files; next }
    { edited[$2]; lines += $3 }
    END {
      for (path in edited) ++n
      printf "Cost: %d new file%s, %d lines in %d other file%s.", files, files == 1 ? "" : "s", lines, n, n == 1 ? "" : "s"
    }' cost)
  echo "$1: $said"
  awk -v section="## $1" '/^## / { inside = $0 == section } inside' "$source/docs/adding.md" >section
  says "$said" section
}

# add_all: every section that has code, each to the tree that holds those before it
add_all() {
  command -v git >/dev/null || skip "no git here"
  local section
  for section in "An operation" "A mixer" "A source of data" "A format of labelled data" "A tokenizer" "A type of model" "A loss" \
    "An optimizer" "A metric" "A subcommand"; do
    mkdir "$section"
    (cd "$section" && add "$section") || return 1
  done
  cmp "$source/tests/arrows.txt" "$tree/tests/arrows.txt"
}
