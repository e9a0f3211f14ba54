// capstan verify: checks every file of runs for damage; with --replay, also computes a piece of a run again and
// compares it with what was saved. tests/cli/runs/test_verify.cpp and test_replay.cpp.
#include <iostream>

#include "apps/command_line/options.hpp"
#include "apps/command_line/rank_options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/base/stop.hpp"
#include "core/io/log.hpp"
#include "run/setup/file_safety.hpp"
#include "run/summaries/run_check.hpp"
#include "run/summaries/run_folders.hpp"
#include "run/training/replay.hpp"

namespace capstan {
namespace {

struct VerifyOptions {
  std::vector<std::string> runs;  // run folders, or folders of runs
  bool trust = false;             // follow links that lead out of a run's folder
  bool replays = false;
  std::string steps;  // FROM..TO; empty: from the last but one checkpoint to the last
  ReplayOptions replay;
  RankOptions ranks;
};

int replay(VerifyOptions& given) {
  if (given.runs.size() != 1) throw ConfigError("--replay: one run is computed again; give one");
  if (!given.steps.empty()) take_steps(given.steps, given.replay);
  const std::string& run = given.runs.front();
  return run_on_ranks(given.ranks, [&](Communicator& ranks) {
    if (!given.trust) refuse_links_outside(run);
    try {
      const ReplayReport report = replay_run(run, given.replay, ranks);
      if (!ranks.first()) return exit_done;
      std::cout << run << ", ";
      print_replay(report, std::cout);
      return report.differences.empty() ? exit_done : exit_failed;
    } catch (const Stopped&) {
      log_warning("interrupted: nothing of the replay is kept, and the same command begins it again");
      return exit_interrupted;
    }
  });
}

int verify(VerifyOptions& options) {
  if (options.replays || !options.steps.empty()) return replay(options);
  std::vector<std::string> runs;
  for (const std::string& folder : options.runs)  // one call each: beside runs, short runs of searches are left out
    for (const std::string& run : run_folders({folder})) runs.push_back(run);
  int64_t damaged = 0;
  for (const std::string& run : runs) {
    const int code = run_command([&] {  // each run by itself: one that cannot be read must not hide the others
      if (!options.trust) refuse_links_outside(run);
      return print_parts(run, check_run(run), std::cout) ? exit_done : exit_failed;
    });
    damaged += code != exit_done ? 1 : 0;
  }
  if (damaged > 0 && runs.size() > 1)
    log_error(fmt::format("{} of {} runs are damaged or cannot be read", damaged, runs.size()));
  return damaged > 0 ? exit_failed : exit_done;
}

}  // namespace

void add_verify_command(CLI::App& program) {
  const auto [command, options] =
      add_command(program, "verify", "Check every file of a run for damage, or compute a piece of it again", verify);
  add_runs(command, options.runs, "run folders, or folders of runs");
  command.add_flag("--trust", options.trust, trust_help);
  command.add_flag("--replay", options.replays,
                   "also compute a piece of the run again, and compare it bit for bit with what the run saved");
  command
      .add_option(
          "--steps", options.steps,
          "the piece: steps that have checkpoints, or 0 for the begin of the run; default: from the last but one "
          "checkpoint to the last")
      ->type_name("FROM..TO");
  add_set_option(command, options.replay.overrides);
  add_rank_options(command, options.ranks);
  command.footer(
      R"(Checkpoints and metrics are read in full and compared with their checksums. Nothing of the run is written.
--replay compares weights, the optimizer's state, the position in the data and the lines of metrics.jsonl (but for
times and memory), and names what differs first. A linear classifier is solved for again as a whole. Another run can
be replayed only from 0 once it is finished, unless train.keep_optimizer: true kept its newest train.keep_last
checkpoints. The checkpoints of a replay are in the folder for temporary files (TMPDIR) until its end.
Exit code 0: everything is whole, and all bits are the same; 1: something is damaged or differs.
For example:  capstan verify runs/*
              capstan verify runs/lm --replay --set threads=1
              capstan verify received --replay --set data.train=[my/train.tsv] data.test=[])");
}

}  // namespace capstan
