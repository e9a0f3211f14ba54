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

case_the_table_of_keys_is_current() {
  "$capstan" config table >table
  sed -n '/^| Key /,$p' "$source/docs/configuration.md" | diff - table ||
    { echo "docs/configuration.md is out of date: run scripts/update-docs.sh"; return 1; }
}

run_cases
