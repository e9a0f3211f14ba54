// capstan replay: computes a piece of a run again and compares it with what was saved. tests/cli/runs/test_replay.cpp.
#include <iostream>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/rank_options.hpp"
#include "apps/command_line/text_options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/base/stop.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/file_safety.hpp"
#include "run/training/replay.hpp"

namespace capstan {
namespace {

struct ReplayCommand {
  std::string run, steps;  // steps: FROM..TO; empty: from the last but one checkpoint to the last
  ReplayOptions options;
  RankOptions ranks;
  bool trust = false;  // follow links that lead out of the run's folder
};

/// Sets the steps from a text such as "1000..1500".
void take_steps(const std::string& text, ReplayOptions& options) {
  const size_t dots = text.find("..");
  const auto number = [&](const std::string& digits) {
    if (digits.empty() || digits.size() > 15 || digits.find_first_not_of("0123456789") != std::string::npos)
      throw ConfigError(fmt::format("--steps: expected FROM..TO, such as 1000..1500, got {}", text));
    return std::stoll(digits);
  };
  options.from = number(text.substr(0, dots));
  options.to = number(dots == std::string::npos ? "" : text.substr(dots + 2));
}

int replay(ReplayCommand& given) {
  if (!given.steps.empty()) take_steps(given.steps, given.options);
  return run_on_ranks(given.ranks, [&](Communicator& ranks) {
    if (!given.trust) refuse_links_outside(given.run);
    try {
      const ReplayReport report = replay_run(given.run, given.options, ranks);
      if (!ranks.first()) return exit_done;
      std::cout << given.run << ", ";
      print_replay(report, std::cout);
      return report.differences.empty() ? exit_done : exit_failed;
    } catch (const Stopped&) {
      log_warning("interrupted: nothing of the replay is kept, and the same command begins it again");
      return exit_interrupted;
    }
  });
}

}  // namespace

void add_replay_command(CommandParser& cli) {
  const auto [command, given] = cli.add_subcommand<ReplayCommand>(
      "replay", "Compute a piece of a run again, and compare it bit for bit with what the run saved", replay);
  command.add_option("run", given.run, "run folder", "RUN")->required();
  command.add_option("--steps", given.steps,
                     "FROM..TO: steps that have checkpoints, or 0 for the begin of the run; default: from the last but "
                     "one checkpoint to the last",
                     "FROM..TO");
  add_set_option(command, given.options.overrides);
  command.add_option("--scratch", given.options.scratch,
                     "folder for the checkpoints of the replay, which are removed at its end; default: that for "
                     "temporary files",
                     "FOLDER");
  command.add_flag("--trust", given.trust, trust_help);
  add_rank_options(command, given.ranks);
  command.on_stray_argument(one_run);
  command.footer(
      R"(Weights, the optimizer's state, the position in the data, the lines of metrics.jsonl (but for times and
memory) and classes.txt are compared; what differs first is named, as is what `capstan verify` finds damaged.
The run itself is only read. A linear classifier is solved for again as a whole.
A finished run can be replayed only from 0, unless train.keep_optimizer: true kept its newest train.keep_last
checkpoints.
Exit code 0: all bits are the same; 1: something differs, or could not be computed.
For example:  capstan replay runs/lm --set threads=1
              capstan replay received --set data.train=[my/train.tsv] data.test=[])");
}

}  // namespace capstan
