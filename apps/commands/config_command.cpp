// capstan config: checks, prints and explains configurations, and lists their keys.
// tests/cli/runs/test_commands.cpp, test_configs.sh.
#include <iostream>
#include <string>

#include "apps/command_line/options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "run/setup/run_data.hpp"
#include "run/training/sweep.hpp"
#include "run/yaml/config.hpp"

namespace capstan {
namespace {

int print_config(const ConfigOptions& options) {
  std::cout << to_yaml(with_data_columns(load_run(options)));
  return exit_done;
}

int check_config(const ConfigOptions& options) {
  if (const auto sweep = find_sweep(options))
    std::cout << fmt::format("{}: the configurations of {} runs are valid\n", sweep->folder.filename().string(),
                             sweep->runs.size());
  else
    std::cout << with_data_columns(load_run(options)).name << ": the configuration is valid\n";
  return exit_done;
}

int print_key(const std::string& key) {
  std::cout << explain_key(config_rows<RunConfig>(), key);
  return exit_done;
}

int print_keys() {
  std::cout << markdown_table(shortened(config_rows<RunConfig>()));
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
  runs(*command.add_subcommand("table", "Print all keys with values, default and meaning, as Markdown"), print_keys);
}

}  // namespace capstan
