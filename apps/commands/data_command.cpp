// capstan data: what the files of a configuration hold, and what looks wrong with them.
// tests/cli/inputs/test_data_check.cpp.
#include <iostream>

#include "apps/command_line/options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "run/setup/run_data.hpp"
#include "run/summaries/data_report.hpp"
#include "run/training/train_run.hpp"

namespace capstan {
namespace {

struct DataCheckOptions {
  ConfigOptions config;
  std::string format = "text";
};

/// Refuses data that cannot be opened, or would not fit into memory, before anything is read.
int check_data(const DataCheckOptions& options) {
  const RunConfig config = with_data_columns(load_run(options.config, check_data_files));
  const DataReport report = check_source(config.data, source_inputs(config));
  if (options.format == "json")
    print_json(report, std::cout);
  else
    print_text(report, std::cout);
  return report.errors.empty() ? exit_done : exit_failed;
}

}  // namespace

void add_data_command(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("data", "Look at the data of a configuration");
  command.require_subcommand(1)->footer("For example:  capstan data check --config configs/classify.yaml");
  const auto [check, options] = add_command(
      command, "check", "Count and check the data before training, and warn of what looks wrong", check_data);
  add_config_options(check, options.config)->required();
  add_format(check, options.format, {"text", "json"});
  check.footer(
      R"(Shows for each split: examples, classes, lengths in tokens, truncated and duplicate texts, texts that two
splits share, unknown tokens, and how the files are encoded. "in train" counts the texts of a split that are
also in train; "other label" those that have a copy with another label. Warnings name the key to set, and are
repeated by capstan train. Exit code 0 with or without warnings, 1 with errors that would stop the training.
For example:  capstan data check --config configs/classify.yaml --set data.train=[mine.tsv] data.test=[])");
}

}  // namespace capstan
