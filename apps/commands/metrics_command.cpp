// capstan metrics: the learning curve of runs. tests/cli/runs/test_report.cpp.
#include <iostream>
#include <memory>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/output.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/strings/printable.hpp"
#include "run/summaries/run_record.hpp"
#include "run/summaries/run_table.hpp"

namespace capstan {
namespace {

struct MetricsOptions {
  std::vector<std::string> runs;  // run folders, or folders of runs
  std::string format = "text";
};

int show_metrics(const MetricsOptions& options) {
  const std::vector<std::string> folders = run_folders(options.runs);
  const bool single = folders.size() == 1;
  Table csv;
  for (const RunRecord& run : single ? std::vector{read_record(folders.front())} : read_records(folders)) {
    if (options.format == "text") {
      if (!single) std::cout << printable_line(run.folder) << ":\n";
      print_text(curve_table(run, TableStyle::people), std::cout, output_columns());
      continue;
    }
    Table curve = curve_table(run, TableStyle::programs);
    for (auto& row : curve)
      if (!single) row.insert(row.begin(), &row == &curve.front() ? "run" : run.folder);
    csv.insert(csv.end(), csv.empty() ? curve.begin() : curve.begin() + 1, curve.end());
  }
  print_csv(csv, std::cout);
  return exit_done;
}

}  // namespace

void add_metrics_command(CommandParser& cli) {
  const auto [command, options] = cli.add_subcommand<MetricsOptions>(
      "metrics", "Print the learning curve of a run: losses, learning rate, speed and memory over its steps",
      show_metrics);
  command.add_option("runs", options.runs, "run folders, or folders of runs", "RUN")->required();
  command.add_choice("--format", options.format, {"text", "csv"}, "text or csv");
  command.footer(
      R"(Prints one row for each step recorded in metrics.jsonl. In csv, values that were not measured are empty, and
of several runs the first column names the run.
For example:  capstan metrics runs/listops --format csv > listops.csv)");
}

}  // namespace capstan
