// capstan compare: a table of runs, the best first, with the keys in which they differ; without runs, those that there
// are; with --data, two of them on the same texts. tests/cli/training/test_sweep.cpp, tests/cli/runs/test_eval.cpp and
// test_compare_models.cpp.
#include <iostream>

#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/command_line/text_options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/log.hpp"
#include "run/predictions/compare_models.hpp"
#include "run/setup/file_safety.hpp"
#include "run/summaries/run_list.hpp"
#include "run/summaries/run_table.hpp"

namespace capstan {
namespace {

struct CompareOptions {
  std::vector<std::string> runs;  // run folders, or folders of runs; none: those in the folder runs are listed
  std::string format = "text";
  std::string data, output;  // texts for two runs, and the file for those on which they differ
};

/// Figures of both models, with what chance alone would do.
Table figures_table(const ModelComparison& comparison, const CompareOptions& options) {
  Table table = {{"figure", options.runs[0], options.runs[1], "difference", "95 % interval", "p", "by"}};
  for (const ComparedFigure& figure : comparison.figures)
    table.push_back({figure.name, fmt::format("{:.4f}", figure.first), fmt::format("{:.4f}", figure.second),
                     fmt::format("{:+.4f}", figure.paired.difference),
                     fmt::format("{:+.4f} to {:+.4f}", figure.paired.low, figure.paired.high),
                     fmt::format("{:.4g}", figure.paired.p_value), figure.test});
  return table;
}

int compare_on_texts(const CompareOptions& options) {
  if (options.runs.size() != 2)
    throw ConfigError(fmt::format("--data: two runs are compared on texts; {} are given", options.runs.size()));
  if (!options.output.empty()) check_output_file(options.output, {options.data});
  const Run first = Run::open(options.runs[0]), second = Run::open(options.runs[1]);
  const auto open = [&](const Run& run, const std::string& folder) {
    TextOptions texts;
    texts.run = folder;
    texts.input.file = options.data;
    texts.input.labels = !first.classes.empty() && !second.classes.empty();
    return open_texts(run, texts, "capstan predict");
  };
  TextInput of_first = open(first, options.runs[0]), of_second = open(second, options.runs[1]);
  const ModelComparison comparison = compare_models(first, second, of_first, of_second);
  if (comparison.texts == 0) throw Error(fmt::format("{}: there is no text", options.data));
  const Table table = figures_table(comparison, options);
  options.format == "csv" ? print_csv(table, std::cout) : print_text(table, std::cout, output_columns());
  log_info(fmt::format("{} texts of {}", comparison.texts, options.data));
  if (!first.classes.empty())
    log_info(fmt::format("both are right on {}, only {} on {}, only {} on {}, neither on {}; they differ on {}{}",
                         comparison.right[1][1], options.runs[0], comparison.right[1][0], options.runs[1],
                         comparison.right[0][1], comparison.right[0][0], comparison.differing.size(),
                         options.output.empty() ? ": --output FILE writes these" : ""));
  if (!options.output.empty())
    replace_file(options.output, differing_tsv(comparison, options.runs[0], options.runs[1]));
  return exit_done;
}

int compare(const CompareOptions& options) {
  const bool csv = options.format == "csv";
  if (!options.data.empty()) return compare_on_texts(options);
  if (!options.output.empty()) throw ConfigError("--output: it needs --data, the texts on which two runs are compared");
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
  command
      .add_option(
          "--data", options.data,
          "labelled texts (of language models: texts): the figures of two runs on them, and whether they differ "
          "by chance")
      ->type_name("FILE");
  add_output(command, options.output, "FILE", "with --data: write the texts to which the two give different labels");
  command.footer(
      R"(Runs that were evaluated on other texts, or have other types of model, are in blocks; in the csv, evaluated_on
says on what. In a block, they are sorted by validation loss, or by accuracy if all have train.monitor: accuracy.
Loss, accuracy and "at step" are from the best evaluation of a run. Runs that are still training are shown with their
results so far. What is the same in all runs is in a line above the table. For runs that differ only in their
seed or in data.fold, a second table shows mean and standard deviation (text only).
With --data, accuracies are compared by McNemar's exact test, other figures by a paired bootstrap; a label that a model
does not know is one that it gets wrong.
For example:  capstan compare
              capstan compare runs/*
              capstan compare runs/listops/* --format csv > listops.csv
              capstan compare runs/march runs/april --data test.csv --output differing.tsv)");
}

}  // namespace capstan
