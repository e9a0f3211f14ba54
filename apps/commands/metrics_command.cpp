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
  const RunRecord run = read_record(options.run);
  if (options.format == "csv")
    print_csv(curve_table(run, TableStyle::programs), std::cout);
  else
    print_text(curve_table(run, TableStyle::people), std::cout);
  return exit_done;
}

}  // namespace

void add_metrics_command(CommandParser& cli) {
  const auto [command, options] = cli.add_subcommand<MetricsOptions>(
      "metrics", "Print the learning curve of a run: losses, learning rate, speed and memory over its steps",
      show_metrics);
  command.add_option("run", options.run, "run folder", "RUN")->required();
  command.add_choice("--format", options.format, {"text", "csv"}, "text or csv");
  command.on_stray_argument(one_run);
  command.footer(
      R"(Prints one row for each step recorded in metrics.jsonl. In csv, values that were not measured are empty.
For example:  capstan metrics runs/listops --format csv > listops.csv)");
}

}  // namespace capstan
