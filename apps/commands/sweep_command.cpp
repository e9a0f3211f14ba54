// capstan sweep: trains a run for each combination of values. tests/cli/training/test_sweep.cpp.
#include <iostream>

#include "apps/command_line/next_commands.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/commands/commands.hpp"
#include "core/io/log.hpp"
#include "core/strings/printable.hpp"
#include "run/training/search.hpp"

namespace capstan {
namespace {

int train_sweep(const SearchOptions& options) {
  const SearchEnd end = search(
      options, [](const Command& body) { return run_command(body); }, std::cout, output_columns());
  if (end.interrupted) return exit_interrupted;
  const std::string folder = end.folder.string();
  const std::string word = shell_word(folder);
  if (end.finished > 0)
    say_next(disk_line(folder), "capstan compare " + word, "capstan report " + word + " --output report.html");
  const int code = report_failures(end.failed);
  if (code != exit_done)
    log_error(fmt::format("{} of {} runs failed; the same command tries them again", end.failed.size(), end.runs));
  return code;
}

}  // namespace

void add_sweep_command(CLI::App& program) {
  const auto [command, options] = add_command(
      program, "sweep", "Train one run for every combination of the values under the key sweep", train_sweep);
  add_config_options(command, options.config)->required();
  add_force_flag(command, options.run.force);
  command.footer(
      R"(sweep: {train.lr: [1e-3, 3e-3], seed: [1, 2, 3]} makes six runs in <folder>/<name>/, such as lr=1e-3,seed=1.
All configurations are checked before the first run starts. Repeating the command skips finished runs and
resumes the others. At the end it prints a table of the runs, as capstan compare does. When a run fails, the
others are still trained and the exit code is 1.
For example:  capstan sweep --config configs/quickstart-classifier.yaml --set "sweep.train.lr=[1e-3, 3e-3]")");
}

}  // namespace capstan
