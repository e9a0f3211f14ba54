// capstan config: checks, prints and explains configurations, and lists their keys.
// tests/cli/runs/test_commands.cpp, test_configs.sh.
#include <algorithm>
#include <iostream>
#include <memory>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "run/training/sweep.hpp"
#include "run/yaml/config.hpp"

namespace capstan {

void add_config_command(CommandParser& cli) {
  CommandParser* const command = cli.add_subcommand("config", "Print, check or explain a configuration");
  command->require_subcommand();
  command->footer(
      "For example:  capstan config check --config configs/quickstart-lm.yaml --set model.width=256\n"
      "              capstan config explain train.lr");
  const auto options = std::make_shared<ConfigOptions>();
  const auto load = [options] {
    if (options->files.empty()) throw ConfigError("config: no configuration given: name a file with --config");
    return load_run(*options);
  };

  CommandParser* const print =
      command->add_subcommand("print", "Print the whole configuration, defaults included, as YAML");
  add_config_options(*print, *options);
  print->does([=] {
    std::cout << to_yaml(load());
    return exit_done;
  });

  CommandParser* const check = command->add_subcommand("check", "Check a configuration and report all errors in it");
  add_config_options(*check, *options);
  check->does([=] {
    if (!options->files.empty() && has_sweep(*options)) {
      const Sweep sweep = load_sweep(*options);
      std::cout << fmt::format("{}: the configurations of {} runs are valid\n", sweep.folder.filename().string(),
                               sweep.runs.size());
      return exit_done;
    }
    std::cout << load().name << ": the configuration is valid\n";
    return exit_done;
  });

  const auto key = std::make_shared<std::string>();
  CommandParser* const explain =
      command->add_subcommand("explain", "Print what a key means, its limits and its default");
  explain->add_option("key", *key, "the key, or its last parts: mixer.window", "KEY")->required();
  explain->does([=] {
    std::cout << explain_key(config_rows<RunConfig>(), *key);
    return exit_done;
  });

  const auto generated = std::make_shared<bool>(false);
  CommandParser* const table =
      command->add_subcommand("table", "Print all keys with values, default and meaning, as Markdown");
  table->add_flag("--generated", *generated, "those of generated data instead of all others");
  table->does([=] {
    std::vector<TableRow> rows = config_rows<RunConfig>();
    const std::vector<std::string> types = generated_types();  // rows of their keys begin with data(TYPE)
    const auto is_of_one = [&](const TableRow& row) {
      return std::any_of(types.begin(), types.end(),
                         [&](const std::string& type) { return starts_with(row.path, "data(" + type + ")"); });
    };
    rows.erase(std::remove_if(rows.begin(), rows.end(), [&](const auto& row) { return is_of_one(row) != *generated; }),
               rows.end());
    std::cout << markdown_table(shortened(rows));
    return exit_done;
  });
}

}  // namespace capstan
