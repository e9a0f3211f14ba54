// capstan autotune: searches for a better configuration in a given time. tests/cli/training/test_autotune.cpp.
#include <iostream>

#include "apps/command_line/next_commands.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/commands/commands.hpp"
#include "core/io/log.hpp"
#include "run/training/search.hpp"

namespace capstan {
namespace {

struct AutotuneOptions {
  SearchOptions search;
  double minutes = 5;
};

int search_in_time(const AutotuneOptions& options) {
  SearchOptions timed = options.search;
  timed.minutes = options.minutes;
  const SearchEnd end = search(
      timed, [](const Command& body) { return run_command(body); }, std::cout, output_columns());
  if (end.interrupted) return exit_interrupted;
  if (end.finished == 0) return exit_failed;  // the log has the reason
  log_info(disk_line(end.folder.string()));
  say_next(end.first, end.best.string());
  return report_failures(end.failed);
}

}  // namespace

void add_autotune_command(CLI::App& program) {
  const auto [command, options] =
      add_command(program, "autotune", "Search for a better configuration in a given time", search_in_time);
  add_config_options(command, options.search.config)->required();
  add_number(command, "--minutes", options.minutes, greater_up_to(0, 100000),
             "time for the whole search, earlier calls included; the first run is never cut short");
  add_force_flag(command, options.search.run.force);
  command.footer(
      R"(The configuration is trained as it is, then others. Those are the combinations of the values under the key
sweep, as for capstan sweep. Without that key they are other n-grams for a linear-classifier, and learning
rates and dropout for other models. Where the time is not enough for all of them, they are first trained with a
share of the steps or examples, in half of the time, and the best then as a whole. Runs are compared by
train.monitor: on the validation data, or by the cross-validation of a linear classifier that has none.
The best whole run is named last: by accuracy the configuration as it is, unless another is better by more than
a standard error. Repeating the command resumes an interrupted search; with more
--minutes it continues. If a candidate fails, the others are still tried and the exit code is 1.
For example:  capstan autotune --config configs/classify.yaml --set data.train=[train.tsv] --minutes 5)");
}

}  // namespace capstan
