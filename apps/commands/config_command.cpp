// capstan config: checks, prints and explains configurations, and lists their keys.
// tests/cli/runs/test_commands.cpp, test_configs.sh.
#include <algorithm>
#include <iostream>

#include "apps/command_line/options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "run/training/sweep.hpp"
#include "run/yaml/config.hpp"

namespace capstan {
namespace {

int print_config(const ConfigOptions& options) {
  std::cout << to_yaml(load_run(options));
  return exit_done;
}

int check_config(const ConfigOptions& options) {
  if (!has_sweep(options)) {
    std::cout << load_run(options).name << ": the configuration is valid\n";
    return exit_done;
  }
  const Sweep sweep = load_sweep(options);
  std::cout << fmt::format("{}: the configurations of {} runs are valid\n", sweep.folder.filename().string(),
                           sweep.runs.size());
  return exit_done;
}

int print_key(const std::string& key) {
  std::cout << explain_key(config_rows<RunConfig>(), key);
  return exit_done;
}

/// `generated`: the keys of generated data instead of all others.
int print_keys(const bool& generated) {
  std::vector<TableRow> rows = config_rows<RunConfig>();
  const std::vector<std::string> types = generated_types();  // rows of their keys begin with data(TYPE)
  const auto is_of_one = [&](const TableRow& row) {
    return std::any_of(types.begin(), types.end(),
                       [&](const std::string& type) { return starts_with(row.path, "data(" + type + ")"); });
  };
  rows.erase(std::remove_if(rows.begin(), rows.end(), [&](const auto& row) { return is_of_one(row) != generated; }),
             rows.end());
  std::cout << markdown_table(shortened(rows));
  return exit_done;
}

}  // namespace

void add_config_command(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("config", "Print, check or explain a configuration");
  command.require_subcommand(1)->footer(
      "For example:  capstan config check --config configs/quickstart-lm.yaml --set model.width=256\n"
      "              capstan config explain train.lr");
  const auto [print, printed] =
      add_command(command, "print", "Print the whole configuration, defaults included, as YAML", print_config);
  add_config_options(print, printed)->required();
  const auto [check, checked] =
      add_command(command, "check", "Check a configuration and report all errors in it", check_config);
  add_config_options(check, checked)->required();
  const auto [explain, key] =
      add_command(command, "explain", "Print what a key means, its limits and its default", print_key);
  explain.add_option("KEY", key, "the key, or its last parts: mixer.window")->required()->type_name("");
  const auto [table, generated] =
      add_command(command, "table", "Print all keys with values, default and meaning, as Markdown", print_keys);
  table.add_flag("--generated", generated, "those of generated data instead of all others");
}

}  // namespace capstan
