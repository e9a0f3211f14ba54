#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <thread>

#include "apps/commands/command_parser.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/options.hpp"
#include "apps/commands/sweep.hpp"
#include "apps/commands/train_run.hpp"
#include "apps/runs/log.hpp"
#include "apps/runs/run_table.hpp"
#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "train/loop/signals.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

struct SweepOptions {
  ConfigOptions config;
  TrainRunOptions run;
};

/// Blocks the signals during its lifetime.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t watched;
    sigemptyset(&watched);
    for (const int number : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&watched, number);
    sigprocmask(SIG_BLOCK, &watched, &before_);
  }
  ~SignalsHeld() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

/// How the process of a run ended.
struct Ending {
  int code = -1;  // -1: ended by `signal`
  int signal = 0;
};

/// The process of a run; it saves and stops when this process ends.
[[noreturn]] void be_the_run(const RunConfig& config, const TrainRunOptions& options, pid_t parent) {
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) ::signal(number, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) ::_exit(exit_interrupted);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  Communicator alone;
  const int code = run_command([&] { return train_run(config, options, alone); });
  std::_Exit(code);  // without closing what the parent has opened
}

/// Trains every run in a separate process: its memory is released when it ends, its peak memory is its own, and a crash
/// leaves the other runs alone. A plain fork is enough, because this process has started no thread and holds no data.
Ending run_in_child(const RunConfig& config, const TrainRunOptions& options) {
  const pid_t parent = getpid();
  pid_t child = -1;
  {
    const SignalsHeld held;
    child = ::fork();
    if (child == 0) be_the_run(config, options, parent);
  }
  if (child < 0) throw_file_error("start a process for", (fs::path(config.folder) / config.name).string(), errno);
  int status = 0;
  for (bool asked = false; ::waitpid(child, &status, WNOHANG) == 0;) {
    // Ctrl-C reaches both processes. A second SIGINT would end the run immediately; SIGTERM always lets it save.
    if (StopSignals::received() != 0 && !asked) asked = ::kill(child, SIGTERM) == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (WIFSIGNALED(status)) return {-1, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

std::string describe_ending(const Ending& ending) {
  if (ending.signal == 0) return fmt::format("exit code {}", ending.code);
  const char* const name = sigabbrev_np(ending.signal);
  return fmt::format("ended by SIG{}{}", name != nullptr ? name : "?",
                     ending.signal == SIGKILL ? " (possibly out of memory)" : "");
}

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

int run_sweep(const SweepOptions& options) {
  const Sweep sweep = load_sweep(options.config, options.run.force ? check_forced : check_trainable);
  check_folder(sweep);
  const StopSignals signals;
  std::vector<std::string> failed;
  for (size_t i = 0; i < sweep.runs.size(); ++i) {
    const RunConfig& run = sweep.runs[i];
    const std::string place = (sweep.folder / run.name).string();
    const std::string count = fmt::format("run {} of {}", i + 1, sweep.runs.size());
    if (is_finished(run)) {
      log_info(fmt::format("{}: {} is finished", count, place));
      continue;
    }
    log_info(fmt::format("{}: {}", count, place));
    const Ending ending = run_in_child(run, options.run);
    if (StopSignals::received() != 0 || ending.code == exit_interrupted) {
      log_info(fmt::format("sweep interrupted during {}; the same command resumes it", count));
      return exit_interrupted;
    }
    if (ending.code == exit_done) continue;
    failed.push_back(fmt::format("{}: {}", place, describe_ending(ending)));
    log_error(fmt::format("{}: {}; the other runs continue", count, failed.back()));
  }
  print_table(sweep);
  for (const std::string& failure : failed) log_error(fmt::format("failed: {}", failure));
  if (!failed.empty())
    log_error(fmt::format("{} of {} runs failed; the same command tries them again", failed.size(), sweep.runs.size()));
  return failed.empty() ? exit_done : exit_failed;
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
