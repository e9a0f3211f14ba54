// capstan compare: a table of runs, the best first, with the keys in which they differ.
// tests/cli/training/test_sweep.cpp.
#include <iostream>
#include <memory>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/output.hpp"
#include "apps/commands/commands.hpp"
#include "run/summaries/run_table.hpp"

namespace capstan {
namespace {

struct CompareOptions {
  std::vector<std::string> runs;  // run folders, or folders of runs
  std::string format = "text";
};

int compare(const CompareOptions& options) {
  const std::vector<RunRecord> runs = read_records(options.runs);
  if (options.format == "csv")
    print_csv(run_table(runs, TableStyle::programs), std::cout);
  else
    print_comparison(runs, std::cout, output_columns());
  return exit_done;
}

}  // namespace

void add_compare_command(CommandParser& cli) {
  const auto [command, options] = cli.add_subcommand<CompareOptions>(
      "compare", "Compare runs in one table: the keys in which they differ, and their results", compare);
  command.add_option("runs", options.runs, "run folders, or folders of runs, such as that of a sweep", "RUN")
      ->required();
  command.add_choice("--format", options.format, {"text", "csv"}, "text or csv");
  command.footer(
      R"(Runs that were evaluated on other texts, or have other types of model, are in blocks; in the csv, evaluated_on
says on what. In a block, they are sorted by validation loss, or by accuracy if all have train.monitor: accuracy.
Loss, accuracy and "at step" are from the best evaluation of a run. Runs that are still training are shown with their
results so far. What is the same in all runs is in a line above the table. For runs that differ only in their
seed or in data.fold, a second table shows mean and standard deviation (text only).
For example:  capstan compare runs/*
              capstan compare runs/listops/* --format csv > listops.csv)");
}

}  // namespace capstan
