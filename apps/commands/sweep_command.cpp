#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/rank_options.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/train_child.hpp"
#include "core/base/error.hpp"
#include "run/summaries/run_table.hpp"
#include "run/training/sweep.hpp"
#include "run/training/train_run.hpp"
#include "train/loop/signals.hpp"
#include "train/records/log.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

struct SweepOptions {
  ConfigOptions config;
  TrainRunOptions run;
};

void check_folder(const Sweep& sweep) {
  if (fs::exists(sweep.folder / "config.yaml"))
    throw Error(fmt::format("{} is the folder of a single run: give the sweep another name", sweep.folder.string()));
}

void print_table(const Sweep& sweep) {
  std::vector<std::string> folders;
  for (const RunConfig& run : sweep.runs) {
    const fs::path folder = sweep.folder / run.name;
    if (fs::exists(folder / "metrics.jsonl")) folders.push_back(folder.string());
  }
  if (!folders.empty()) print_comparison(read_records(folders), std::cout);
}

/// What happened to the runs so far.
class Progress {
 public:
  explicit Progress(const Sweep& sweep) : sweep_(sweep) {}

  /// The next run that is not finished; nothing after the last one, and after an interruption.
  std::optional<size_t> next() {
    while (!interrupted_ && next_ < sweep_.runs.size()) {
      const size_t index = next_++;
      const bool finished = is_finished(sweep_.runs[index]);
      log_info(fmt::format("{}: {}{}", count(index), place(index), finished ? " is finished" : ""));
      if (!finished) return index;
    }
    return std::nullopt;
  }

  void ended(size_t index, const Ending& ending) {
    if (ending.code == exit_interrupted || (StopSignals::received() != 0 && ending.code != exit_done)) {
      interrupted_ = true;
      log_info(fmt::format("sweep interrupted during {}; the same command resumes it", count(index)));
    } else if (ending.code != exit_done) {
      failed_.push_back(fmt::format("{}: {}", place(index), describe_ending(ending)));
      log_error(fmt::format("{}: {}; the other runs continue", count(index), failed_.back()));
    }
  }

  int finish() const {
    if (interrupted_) return exit_interrupted;
    print_table(sweep_);
    for (const std::string& failure : failed_) log_error(fmt::format("failed: {}", failure));
    if (!failed_.empty())
      log_error(
          fmt::format("{} of {} runs failed; the same command tries them again", failed_.size(), sweep_.runs.size()));
    return failed_.empty() ? exit_done : exit_failed;
  }

 private:
  std::string place(size_t index) const { return (sweep_.folder / sweep_.runs[index].name).string(); }
  std::string count(size_t index) const { return fmt::format("run {} of {}", index + 1, sweep_.runs.size()); }

  const Sweep& sweep_;
  size_t next_ = 0;
  bool interrupted_ = false;
  std::vector<std::string> failed_;
};

int run_sweep(const SweepOptions& options) {
  refuse_ranks("capstan sweep");
  const Sweep sweep = load_sweep(options.config, options.run.force ? check_forced : check_trainable);
  check_folder(sweep);
  const StopSignals signals;
  Progress progress(sweep);
  while (const std::optional<size_t> run = progress.next())
    progress.ended(*run, train_in_child(sweep.runs[*run], options.run, [] { return StopSignals::received() != 0; }));
  return progress.finish();
}

}  // namespace

void add_sweep_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command =
      cli.add_subcommand("sweep", "Train one run for every combination of the values under the key sweep");
  const auto options = std::make_shared<SweepOptions>();
  add_config_options(*command, options->config)->required();
  add_force_flag(*command, options->run.force);
  command->footer(
      "sweep: {train.lr: [1e-3, 3e-3], seed: [1, 2, 3]} makes six runs in <folder>/<name>/, such as lr=1e-3,seed=1.\n"
      "All configurations are checked before the first run starts. Repeating the command skips finished runs and\n"
      "resumes the others. At the end it prints a table of the runs, as capstan compare does. When a run fails, the\n"
      "others are still trained and the exit code is 1.\n"
      "For example:  capstan sweep --config configs/quickstart-classifier.yaml --set name=rates "
      "\"sweep.train.lr=[1e-3, 3e-3]\"");
  command->callback([options, choose] { choose([options] { return run_sweep(*options); }); });
}

}  // namespace capstan
