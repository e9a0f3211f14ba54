#include <iostream>
#include <memory>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "run/summaries/run_table.hpp"

namespace capstan {
namespace {

struct CompareOptions {
  std::vector<std::string> runs;
  std::string format = "text";
};

int compare(const CompareOptions& options) {
  if (options.format != "text" && options.format != "csv")
    throw ConfigError(fmt::format("--format: {} is not one of text, csv", options.format));
  const std::vector<RunRecord> runs = read_records(options.runs);
  if (options.format == "csv")
    print_csv(run_table(runs, TableStyle::programs), std::cout);
  else
    print_comparison(runs, std::cout);
  return exit_done;
}

}  // namespace

void add_compare_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command =
      cli.add_subcommand("compare", "Compare runs in one table: the keys in which they differ, and their results");
  const auto options = std::make_shared<CompareOptions>();
  command->add_option("runs", options->runs, "run folders")->required()->type_name("RUN");
  command->add_option("--format", options->format, "text or csv")->capture_default_str();
  command->footer(
      "Runs are sorted by validation loss, or by accuracy if all of them have train.monitor: accuracy. Loss, accuracy\n"
      "and \"at step\" are from the best evaluation of a run. Runs that are still training are shown with their\n"
      "results so far. For runs that differ only in their seed or in data.fold, a second table shows mean and\n"
      "standard deviation (text only).\n"
      "For example:  capstan compare runs/*\n"
      "              capstan compare runs/listops/* --format csv > listops.csv");
  command->callback([options, choose] { choose([options] { return compare(*options); }); });
}

}  // namespace capstan
