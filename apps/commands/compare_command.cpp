// capstan compare: a table of runs, the best first, with the keys in which they differ.
// tests/cli/training/test_sweep.cpp.
#include <iostream>
#include <memory>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/output.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "run/report/sweep_picture.hpp"
#include "run/summaries/run_table.hpp"

namespace capstan {
namespace {

struct CompareOptions {
  std::vector<std::string> runs;  // run folders, or folders of runs
  std::string format = "text";
  std::string picture;          // the SVG file to write; empty: none
  std::string value = "score";  // the result on the vertical axis, a name of PictureValue
  SweepPictureOptions drawn;    // the other choices of the picture
};

int compare(CompareOptions options) {
  const bool draws = !options.drawn.over.empty() || !options.drawn.reach.empty() || options.value != "score";
  if (options.picture.empty() ? draws : options.drawn.over.empty())
    throw ConfigError(
        "compare: --picture FILE and --over KEY are given together: the picture has a result over the key, which "
        "--value "
        "or --reach chooses");
  const std::vector<RunRecord> runs = read_records(options.runs);
  options.drawn.value = enum_value<PictureValue>(options.value).value();
  if (!options.picture.empty()) write_file(options.picture, sweep_picture(runs, options.drawn));
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
  command.add_option("--picture", options.picture, "also draw a result over a key, as SVG", "FILE");
  command.add_option("--over", options.drawn.over, "the key of the picture's horizontal axis, or its end", "KEY");
  std::vector<std::string> values;
  for (const auto& known : enum_names(PictureValue{})) values.emplace_back(known.name);
  command.add_choice("--value", options.value, values, "the picture's vertical axis; score: what train.monitor names");
  command.add_option("--reach", options.drawn.reach,
                     "vertical axis: seconds of training to the best validation loss of this line", "LINE");
  command.footer(
      R"(Runs that were evaluated on other texts, or have other types of model, are in blocks; in the csv, evaluated_on
says on what. In a block, they are sorted by validation loss, or by accuracy if all have train.monitor: accuracy.
Loss, accuracy and "at step" are from the best evaluation of a run. Runs that are still training are shown with their
results so far. What is the same in all runs is in a line above the table. For runs that differ only in their
seed or in data.fold, a second table shows mean and standard deviation (text only).
For example:  capstan compare runs/*
              capstan compare runs/listops/* --format csv > listops.csv
              capstan compare runs/aft-window --picture window.svg --over window)");
}

}  // namespace capstan
