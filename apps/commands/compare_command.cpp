// capstan compare: a table of runs, the best first, with the keys in which they differ; without runs, those that there
// are. tests/cli/training/test_sweep.cpp, tests/cli/runs/test_eval.cpp.
#include <iostream>

#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/commands/commands.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "run/summaries/run_list.hpp"
#include "run/summaries/run_table.hpp"

namespace capstan {
namespace {

struct CompareOptions {
  std::vector<std::string> runs;  // run folders, or folders of runs; none: those in the folder runs are listed
  std::string format = "text";
};

int compare(const CompareOptions& options) {
  const bool csv = options.format == "csv";
  if (options.runs.empty()) {
    const RunList found = list_recent_runs();
    if (found.table.empty()) return exit_done;
    csv ? print_csv(found.table, std::cout) : print_text(found.table, std::cout, output_columns());
    for (const std::string& problem : found.problems) log_warning(problem);
    return exit_done;
  }
  const std::vector<RunRecord> runs = read_records(options.runs);
  if (csv)
    print_csv(run_table(runs, TableStyle::programs), std::cout);
  else
    print_comparison(runs, std::cout, output_columns());
  return exit_done;
}

}  // namespace

void add_compare_command(CLI::App& program) {
  const auto [command, options] = add_command(
      program, "compare", "Compare runs in one table: the keys in which they differ, and their results", compare);
  command
      .add_option(
          "RUN", options.runs,
          "run folders, or folders of runs, such as that of a sweep; without any, the runs in runs/ are listed, "
          "what was written last first")
      ->type_name("");
  add_format(command, options.format, {"text", "csv"});
  command.footer(
      R"(Runs that were evaluated on other texts, or have other types of model, are in blocks; in the csv, evaluated_on
says on what. In a block, they are sorted by validation loss, or by accuracy if all have train.monitor: accuracy.
Loss, accuracy and "at step" are from the best evaluation of a run. Runs that are still training are shown with their
results so far. What is the same in all runs is in a line above the table. For runs that differ only in their
seed or in data.fold, a second table shows mean and standard deviation (text only).
For example:  capstan compare
              capstan compare runs/*
              capstan compare runs/listops/* --format csv > listops.csv)");
}

}  // namespace capstan
