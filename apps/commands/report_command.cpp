// capstan report: an HTML page about runs. tests/cli/runs/test_report.cpp.
#include "apps/command_line/options.hpp"
#include "apps/commands/commands.hpp"
#include "core/io/file.hpp"
#include "core/io/log.hpp"
#include "run/report/page.hpp"
#include "run/setup/file_safety.hpp"

namespace capstan {
namespace {

/// The page is written at the end, whole or not at all.
int write_report(const ReportOptions& options) {
  const std::vector<ReportedRun> runs = reported_runs(options);
  replace_file(options.output, report_page(runs));
  log_info(fmt::format("{}: {} {}", options.output, runs.size(), runs.size() == 1 ? "run" : "runs"));
  return exit_done;
}

}  // namespace

void add_report_command(CLI::App& program) {
  const auto [command, options] = add_command(
      program, "report",
      "Write an HTML page about runs: results, comparison, learning curves, and what the models learnt", write_report);
  add_runs(command, options.runs, "run folders, or folders of runs");
  add_output(command, options.output, "FILE", "HTML file to write")->required();
  command.add_option("--split", options.split,
                     "split for results and example texts: train, valid or test; default: as of capstan eval");
  command.add_option(
      "--text", options.text,
      "text that the mixing weights are shown for, and that a language model continues; default: one of the split");
  command.add_flag("--trust", options.trust, trust_help);
  command.add_flag("--curves-only", options.curves_only, "leave out everything that needs the models and their data");
  command.footer(
      R"(The page is one file that loads nothing else. Of classifiers it has the figures of capstan eval, of pairs and
language models examples of what they write, and of the layers the position biases of aft-full, aft-local and
aft-conv and the weights that fastformer, flash, gau and attention give to the tokens of an example text.
For example:  capstan report runs/listops/* --output listops.html)");
}

}  // namespace capstan
