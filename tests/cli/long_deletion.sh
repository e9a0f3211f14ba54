# Each system can be deleted: without its folder, its tests, a format of exports that has this system alone, and the
# lines that list them, program and libraries build, the tests of nn and models pass, and the other systems train. $SYSTEMS limits it
# to some of them.
. "$(dirname "$0")/support.sh"

work=$(mktemp -d)
tree=$work/tree
trap 'rm -rf "$work"' EXIT

# delete SYSTEM: from the tree, saying what it took
delete() {
  local folder=nn/systems/$1 config configs format formats lines
  configs=$(awk '/^struct [A-Za-z]*Config/ { name = $2 } / type_name = / { print name }' "$tree/$folder/mixer.hpp")
  types=$(sed -n 's/.* type_name = "\(.*\)";/\1/p' "$tree/$folder/mixer.hpp")
  formats=$(cd "$tree" && grep -lE "\b($(tr '\n' '|' <<<"$configs" | sed 's/|$//'))\b" run/exports/*.cpp | sed 's|.*/||; s|\.cpp$||' || true)
  (cd "$tree" && rm -r "$folder" "tests/$folder")
  for format in $formats; do (cd "$tree" && rm "run/exports/$format.cpp" "run/exports/$format.hpp"); done
  cp -r "$tree" "$work/before"
  for format in $formats; do
    (cd "$tree" && sed -i -e "/case ExportFormat::$format:/,+1d" -e "/exports\/$format\.hpp/d" -e "s/, $format }/ }/" \
      -e "s/, {ExportFormat::$format, \"$format\"}//" run/exports/export_run.*)
  done
  (cd "$tree" && grep -rlE "\"(tests/)?$folder/|^$folder(/[a-z]*)?:" nn run tests/nn tests/models tests/arrows.txt) |
    while read -r file; do
      sed -i -E -e "\\#\"(tests/)?$folder/|^$folder(/[a-z]*)?:#d" "$tree/$file"
    done
  for config in $configs; do sed -i -E "/using MixerConfig/,/;/ s/\\b$config,( |\$)//" "$tree/nn/systems/mixer_config.hpp"; done
  lines=$(diff -r "$work/before" "$tree" | grep -c '^<')
  echo "$1: $folder and its tests;${formats:+ the export ${formats//$'\n'/, };} $lines lines in" \
    "$(diff -rq "$work/before" "$tree" | wc -l) other files:$(diff -rq "$work/before" "$tree" | sed "s|.* and $tree/| |; s| differ||" | tr -d '\n')"
  rm -r "$work/before"
}

# works SYSTEM: what is left, after its deletion
works() {
  for tool in cmake ninja git; do command -v $tool >/dev/null || skip "no $tool here"; done
  case " ${SYSTEMS:-$1} " in *" $1 "*) ;; *) skip "not among \$SYSTEMS" ;; esac
  rm -rf "$tree"
  mkdir -p "$tree"
  (cd "$source" && git ls-files -z | xargs -0 cp -P --parents -t "$tree")
  delete "$1"
  # One build folder for all systems; ninja sees which files have changed by their times.
  find "$tree" -type f -exec touch -r "$source/CMakeLists.txt" {} +
  find "$tree/nn/systems" "$tree/tests/nn/systems" -type f -exec touch {} +
  cmake -S "$tree" -B "$work/build" -G Ninja >log 2>&1 || { tail -n 30 log; return 1; }
  cmake --build "$work/build" --target capstan test_nn test_models test_rooms >log 2>&1 ||
    { grep -A20 -m1 error: log || tail -n 30 log; return 1; }
  for test in test_rooms test_nn test_models; do
    "$work/build/bin/$test" >log 2>&1 || { grep -A5 ERROR log || tail -n 20 log; return 1; }
  done

  capstan=$work/build/capstan
  cat "$source"/docs/*.md >text.txt
  for mixer in aft-simple fastformer attention gau flash; do
    cat >"$mixer.yaml" <<YAML
name: $mixer
data: {type: text, train: [text.txt], sequence_length: 32}
model: {type: language-model, width: 32, max_length: 32, layers: [{mixer: $mixer}]}
train: {batch_size: 2, steps: 1}
YAML
    if grep -qx "$mixer" <<<"$types"; then
      exits 2 "$capstan" config check --config "$mixer.yaml"
      says "got \"$mixer\"" err
    else
      exits 0 "$capstan" train --config "$mixer.yaml"
    fi
  done
  local file named=0
  for file in "$source"/configs/*.yaml; do
    if grep -qE "\\b($(tr '\n' '|' <<<"$types" | sed 's/|$//'))\\b" "$file"; then
      named=$((named + 1))
    else
      (cd "$source" && "$capstan" config check --config "$file" >/dev/null)
    fi
  done
  echo "$1: $named of the files in configs/ name it, the others load"
}

case_without_aft() { works aft; }
case_without_fastformer() { works fastformer; }
case_without_attention() { works attention; }
case_without_gau() { works gau; }
case_without_flash() { works flash; }

run_cases
