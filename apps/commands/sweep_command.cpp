#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/rank_options.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/train_child.hpp"
#include "core/base/error.hpp"
#include "runs/setup/log.hpp"
#include "runs/summaries/run_table.hpp"
#include "runs/training/sweep.hpp"
#include "runs/training/train_run.hpp"
#include "train/loop/signals.hpp"

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
  std::optional<int64_t> next() {
    while (!interrupted_ && next_ < sweep_.runs.size()) {
      const size_t index = next_++;
      const bool finished = is_finished(sweep_.runs[index]);
      log_info(fmt::format("{}: {}{}", count(index), place(index), finished ? " is finished" : ""));
      if (!finished) return static_cast<int64_t>(index);
    }
    return std::nullopt;
  }

  void ended(int64_t run, const Ending& ending) {
    const auto index = static_cast<size_t>(run);
    if (ending.code == exit_interrupted || (StopSignals::received() != 0 && ending.code != exit_done)) {
      interrupt();
      if (!reported_) log_info(fmt::format("sweep interrupted during {}; the same command resumes it", count(index)));
      reported_ = true;
    } else if (ending.code != exit_done) {
      failed_.push_back(fmt::format("{}: {}", place(index), describe_ending(ending)));
      log_error(fmt::format("{}: {}; the other runs continue", count(index), failed_.back()));
    }
  }

  void interrupt() { interrupted_ = true; }
  bool interrupted() const { return interrupted_; }

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
  bool interrupted_ = false, reported_ = false;
  std::vector<std::string> failed_;
};

/// From a rank to rank 0: how its run ended. From rank 0: the next run.
struct RunReport {
  int64_t run = -1;  // -1: none yet
  int32_t code = 0, signal = 0;
};
constexpr int64_t no_more_runs = -1, stop_now = -2;

/// Rank 0 among several: trains runs itself and hands out others.
class RunGiver {
 public:
  RunGiver(Communicator& ranks, Progress& progress)
      : ranks_(ranks), progress_(progress), workers_(static_cast<size_t>(ranks.size())) {
    for (int rank = 1; rank < ranks.size(); ++rank) listen(rank);
  }

  /// Answers those that have written meanwhile; while its own run trains, too.
  void answer() {
    if (StopSignals::received() != 0) progress_.interrupt();
    for (int rank = 1; rank < ranks_.size(); ++rank) {
      Worker& worker = workers_[static_cast<size_t>(rank)];
      if (worker.done) continue;
      if (ranks_.test(worker.pending)) {
        if (worker.report.run >= 0) progress_.ended(worker.report.run, {worker.report.code, worker.report.signal});
        worker.told_to_stop = false;
        const int64_t run = progress_.next().value_or(no_more_runs);
        tell(rank, run);
        worker.done = run == no_more_runs;
        if (!worker.done) listen(rank);
      } else if (progress_.interrupted() && !worker.told_to_stop) {
        tell(rank, stop_now);
        worker.told_to_stop = true;
      }
    }
  }

  bool all_done() const {
    return std::all_of(workers_.begin() + 1, workers_.end(), [](const Worker& worker) { return worker.done; });
  }

 private:
  struct Worker {
    RunReport report;
    Pending pending;
    bool done = false, told_to_stop = false;
  };

  void listen(int rank) {
    Worker& worker = workers_[static_cast<size_t>(rank)];
    worker.pending = ranks_.receive(rank, &worker.report, sizeof(worker.report));
  }
  void tell(int rank, int64_t what) { ranks_.wait_for(ranks_.send(rank, &what, sizeof(what))); }

  Communicator& ranks_;
  Progress& progress_;
  std::vector<Worker> workers_;
};

/// What rank 0 writes to another one.
class Inbox {
 public:
  explicit Inbox(Communicator& ranks) : ranks_(ranks) {}
  std::optional<int64_t> poll() {
    if (!listening_) pending_ = ranks_.receive(0, &word_, sizeof(word_));
    listening_ = !ranks_.test(pending_);
    return listening_ ? std::nullopt : std::optional<int64_t>(word_);
  }
  int64_t wait() {
    if (!listening_) pending_ = ranks_.receive(0, &word_, sizeof(word_));
    listening_ = false;
    ranks_.wait_for(pending_);
    return word_;
  }

 private:
  Communicator& ranks_;
  Pending pending_;
  int64_t word_ = 0;
  bool listening_ = false;
};

/// Trains what rank 0 hands out, until there is nothing more.
int train_what_is_given(const Sweep& sweep, const TrainRunOptions& options, Communicator& ranks) {
  const Communicator::Patience others(ranks);
  Inbox inbox(ranks);
  RunReport report;
  for (bool interrupted = false;;) {
    ranks.wait_for(ranks.send(0, &report, sizeof(report)));
    int64_t run = stop_now;
    while (run == stop_now) run = inbox.wait();  // between two runs there is nothing to stop
    if (run == no_more_runs) return interrupted ? exit_interrupted : exit_done;
    bool stopped = false;
    const Ending ending = train_in_child(sweep.runs[static_cast<size_t>(run)], options, [&] {
      stopped = stopped || inbox.poll().has_value();  // a run is not given before the report of this one
      return stopped || StopSignals::received() != 0;
    });
    interrupted = interrupted || ending.code == exit_interrupted;
    report = {run, ending.code, ending.signal};
  }
}

int run_sweep(const SweepOptions& options, Communicator& ranks) {
  const Sweep sweep = load_sweep(options.config, options.run.force ? check_forced : check_trainable);
  check_folder(sweep);
  const StopSignals signals;
  if (!ranks.first()) return train_what_is_given(sweep, options.run, ranks);
  Progress progress(sweep);
  RunGiver giver(ranks, progress);
  while (const std::optional<int64_t> run = progress.next()) {
    const Ending ending = train_in_child(sweep.runs[static_cast<size_t>(*run)], options.run, [&] {
      giver.answer();
      if (StopSignals::received() != 0) progress.interrupt();
      return progress.interrupted();
    });
    progress.ended(*run, ending);
  }
  while (!giver.all_done()) {
    giver.answer();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return progress.finish();
}

}  // namespace

void add_sweep_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command =
      cli.add_subcommand("sweep", "Train one run for every combination of the values under the key sweep");
  const auto options = std::make_shared<SweepOptions>();
  add_config_options(*command, options->config)->required();
  add_force_flag(*command, options->run.force);
  add_rank_options(*command, options->run.ranks);
  command->footer(
      "sweep: {train.lr: [1e-3, 3e-3], seed: [1, 2, 3]} makes six runs in <folder>/<name>/, such as lr=1e-3,seed=1.\n"
      "All configurations are checked before the first run starts. Repeating the command skips finished runs and\n"
      "resumes the others. At the end it prints a table of the runs, as capstan compare does. When a run fails, the\n"
      "others are still trained and the exit code is 1. With several processes (mpirun -n 4 capstan sweep ...), each\n"
      "trains runs of its own as it becomes free.\n"
      "For example:  capstan sweep --config configs/quickstart-classifier.yaml --set name=rates "
      "\"sweep.train.lr=[1e-3, 3e-3]\"");
  command->callback([options, choose] {
    choose([options] {
      return run_on_ranks(options->run.ranks, [&](Communicator& ranks) { return run_sweep(*options, ranks); });
    });
  });
}

}  // namespace capstan
