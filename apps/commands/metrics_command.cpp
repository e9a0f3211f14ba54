#include <iostream>
#include <memory>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "run/summaries/run_table.hpp"

namespace capstan {
namespace {

struct MetricsOptions {
  std::string run, format = "text";
};

int show_metrics(const MetricsOptions& options) {
  if (options.format != "text" && options.format != "csv")
    throw ConfigError(fmt::format("--format: {} is not one of text, csv", options.format));
  const RunRecord run = read_record(options.run);
  if (options.format == "csv")
    print_csv(curve_table(run, TableStyle::programs), std::cout);
  else
    print_text(curve_table(run, TableStyle::people), std::cout);
  return exit_done;
}

}  // namespace

void add_metrics_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command = cli.add_subcommand(
      "metrics", "Print the learning curve of a run: losses, learning rate, speed and memory over its steps");
  const auto options = std::make_shared<MetricsOptions>();
  command->add_option("run", options->run, "run folder")->required()->type_name("RUN");
  command->add_option("--format", options->format, "text or csv")->capture_default_str();
  command->on_stray_argument(one_run);
  command->footer(
      "Prints one row for each step recorded in metrics.jsonl. In csv, values that were not measured are empty.\n"
      "For example:  capstan metrics runs/listops --format csv > listops.csv");
  command->callback([options, choose] { choose([options] { return show_metrics(*options); }); });
}

}  // namespace capstan
