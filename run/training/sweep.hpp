// `sweep:` in a configuration: several runs, one for every combination of some keys' values.
//
//   sweep: {train.lr: [1e-3, 3e-3], seed: [1, 2, 3]}
//
// `capstan sweep` and autotune.cpp train by it. Names of runs must stay as they are, since a sweep that goes on finds
// its runs by them. tests/run/test_sweep.cpp holds combinations and names, tests/cli/training/test_sweep.cpp processes
// and signals.
#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "run/setup/given_config.hpp"
#include "run/training/train_run.hpp"

namespace capstan {

// A training run in a process of its own, for programs that train several.

/// Exit codes of the program.
constexpr int exit_done = 0, exit_failed = 1, exit_wrong_usage = 2, exit_interrupted = 75;
/// Exit code after training.
inline int exit_code_of(const TrainResult& result) { return result.interrupted ? exit_interrupted : exit_done; }

/// Calls a function that returns an exit code, and turns its exceptions into messages and exit codes.
using Guard = std::function<int(const std::function<int()>& body)>;

/// How the process ended.
struct Ending {
  int code = -1;  // -1: ended by `signal`
  int signal = 0;
};

/// Trains the run in a process of its own: its memory is released when it ends, its peak memory is its own, and a crash
/// leaves the caller alone. The process is a plain fork: the caller must have started no thread and should hold little
/// data. `stop` is asked again and again whether the process should end; it then gets SIGTERM, as it does when the
/// caller ends. Throws Error, naming the run's folder, if no process can be started.
Ending train_in_child(const RunConfig& config, const TrainRunOptions& options, const Guard& guard,
                      const std::function<bool()>& stop);

/// "exit code 1", "ended by SIGKILL (possibly out of memory)".
std::string describe_ending(const Ending& ending);

struct Sweep {
  std::filesystem::path folder;  // <folder>/<name>: holds the folders of the runs
  /// The first key varies slowest. A run is named by its values, "lr=3e-3,seed=2", and is in the sweep's folder.
  std::vector<RunConfig> runs;
};

/// Whether the files or the overrides have a key `sweep`. Throws ConfigError when they cannot be read.
bool has_sweep(const ConfigOptions& options);

/// Every combination, read and checked. The values of a key are a list; keys are paths with dots, or maps of keys.
/// Throws one ConfigError with all problems of all runs, each problem once; it names the run unless all have it.
Sweep load_sweep(const ConfigOptions& options, const ConfigCheck& check = {});

/// The configuration without its key `sweep`, if it has one.
RunConfig load_without_sweep(const ConfigOptions& options, const ConfigCheck& check = {});

// Training the runs of a sweep.

struct SweepEnd {
  bool interrupted = false;         // by a signal; the same call goes on
  std::vector<std::string> failed;  // "runs/rates/lr=1: exit code 1"
};

/// Trains the runs that are not finished one after the other, each in a process of its own; one that fails does not
/// stop the others. `table`, unless interrupted, receives a comparison of the runs, as print_comparison() writes it.
SweepEnd train_sweep(const Sweep& sweep, const TrainRunOptions& options, const Guard& guard, std::ostream& table,
                     size_t width = 0);

}  // namespace capstan
