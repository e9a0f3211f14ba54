// capstan autotune: searches for a better configuration in a given time. tests/cli/training/test_autotune.cpp.
#include <iostream>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/commands/commands.hpp"
#include "core/io/log.hpp"
#include "run/training/autotune.hpp"
#include "run/training/clean_run.hpp"

namespace capstan {
namespace {

int search(const AutotuneOptions& options) {
  const AutotuneEnd result = autotune(
      options, [](const Command& body) { return run_command(body); }, std::cout, output_columns());
  if (result.end == SearchEnd::stopped) return exit_interrupted;
  if (result.end == SearchEnd::failed) return exit_failed;  // the log has the reason
  log_info(disk_line(result.folder.string()));
  say_next(result.config, (result.folder / "best").string());
  return report_failures(result.failed);
}

}  // namespace

void add_autotune_command(CommandParser& cli) {
  const auto [command, options] =
      cli.add_subcommand<AutotuneOptions>("autotune", "Search for a better configuration in a given time", search);
  add_config_options(command, options.config)->required();
  command.add_number(
      "--minutes", options.minutes, greater_up_to(0, 100000),
      "time for the whole search, earlier calls included, 5 without this option; the first run is never cut short");
  add_force_flag(command, options.run.force);
  command.footer(
      R"(The configuration is trained as it is, then others. Those are the combinations of the values under the key
sweep, as for capstan sweep. Without that key they are other n-grams for a linear-classifier, and learning
rates and dropout for other models. Candidates are first trained with a share of the steps or examples; the
best third is then trained with three times as much, and so on (successive halving). Runs are compared by
train.monitor: on the validation data, or by the cross-validation of a linear classifier that has none.
<folder>/<name>/best is a link to the best whole run: by accuracy the configuration as it is, unless another
is better by more than a standard error. Repeating the command resumes an interrupted search; with more
--minutes it continues, unless it is complete. If a candidate fails, the others are still tried and the exit code is 1.
For example:  capstan autotune --config configs/classify.yaml --set data.train=[train.tsv] --minutes 5
              capstan predict runs/classify/best)");
}

}  // namespace capstan
