// Trains several runs of one configuration and compares them: all of a sweep (`capstan sweep`), or those for which a
// time is enough (`capstan autotune`). A search that goes on must come to the same choices: times are kept in
// autotune.json and trials in run folders. tests/cli/training/test_sweep.cpp and test_autotune.cpp.
#pragma once

#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "run/training/child_run.hpp"
#include "run/training/sweep.hpp"

namespace capstan {

struct SearchOptions {
  ConfigOptions config;
  TrainRunOptions run;
  /// The time for all calls together: candidates_of() are tried. None: every run of the sweep is trained.
  std::optional<double> minutes;
};

/// How a search ended. The result itself is in its folder.
struct SearchEnd {
  bool interrupted = false;         // by a signal; the same call goes on
  std::vector<std::string> failed;  // "runs/rates/lr=1: exit code 1"
  std::filesystem::path folder;     // <folder>/<name>: holds the folders of the runs
  size_t runs = 0, finished = 0;    // whole runs: all that there could be, and those that are trained
  std::filesystem::path best;       // the best whole run of a search in a given time
  RunConfig first;
};

/// Trains runs one after the other, each in a process of its own; one that fails does not stop the others. `table`,
/// unless interrupted, receives a comparison of the finished ones, as print_comparison() writes it. In a given time the
/// configuration as it is comes first, as a whole; where the time is not enough for all others, a short run of each,
/// in a random order, takes at most half of what is left, and the best of them are then trained as wholes while there
/// is time. The best whole run follows the table. Throws Error for a folder
/// of something else, ConfigError for runs that cannot be trained or compared.
SearchEnd search(const SearchOptions& options, const Guard& guard, std::ostream& table, size_t width = 0);

/// The share of the training that short runs have is 1 / divisor: 1 where the time is enough for all as wholes, 3 where
/// half of it is enough for a third of each, else 9.
int64_t divisor_for(size_t candidates, double full_seconds, double seconds);

}  // namespace capstan
