# Every file of configs/ is valid as it is, and the documents of keys are current.
. "$(dirname "$0")/support.sh"

case_every_config_is_right() {
  cd "$source"
  for config in configs/*.yaml configs/papers/*.yaml; do
    echo "$config"
    "$capstan" config check --config "$config"
  done
}

case_every_ablation_is_right() {
  cd "$source"
  for sweep in configs/ablations/*.yaml; do
    [ "$sweep" = configs/ablations/base.yaml ] && continue
    "$capstan" config check --config configs/ablations/base.yaml "$sweep"
  done
}

# current PAGE [OPTION]
current() {
  "$capstan" config table "${@:2}" >table
  sed -n '/^| Key /,$p' "$source/docs/$1.md" | diff - table ||
    { echo "docs/$1.md is out of date: run scripts/update-docs.sh"; return 1; }
}

case_the_tables_of_keys_are_current() {
  current configuration
  current generated-data --generated
}

run_cases
