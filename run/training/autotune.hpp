// Search for a better configuration in a given time: `capstan autotune`, by halving.hpp. A search that goes on must
// come to the same choices: times are kept in autotune.json and trials in run folders.
// tests/cli/training/test_autotune.cpp breaks one off, tests/run/test_halving.cpp holds what is tried.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "run/summaries/run_record.hpp"
#include "run/training/halving.hpp"
#include "run/training/sweep.hpp"

namespace capstan {

struct AutotuneOptions {
  ConfigOptions config;  // with a key `sweep`, or the values of default_search_space() are tried
  double minutes = 5;    // for all calls together; the first run is never cut short
  TrainRunOptions run;
};

/// How a search ended. The result itself is in its folder.
struct AutotuneEnd {
  SearchEnd end;
  std::vector<std::string> failed;  // "runs/search/lr=1: exit code 1"
  std::filesystem::path folder;     // of the search
  RunConfig config;                 // the configuration as it is
};

/// Trains the configuration as it is and others by successive halving, each in a process of its own, in the folder that
/// a sweep would have. Its link `best` leads to the best whole run. `table` receives a comparison of the whole runs and
/// the name of the best. Throws Error for a folder of something else, ConfigError for runs that cannot be compared.
AutotuneEnd autotune(const AutotuneOptions& options, const Guard& guard, std::ostream& table, size_t width = 0);

// What `capstan autotune` tries.

/// Overrides with the values of a sweep, such as "sweep.train.lr=[5e-4, 1e-3, 2e-3]", for a configuration that has no
/// key `sweep`: of a linear classifier its n-grams; else rates and dropout around those of the configuration.
std::vector<std::string> default_search_space(const RunConfig& config);

/// The configuration with 1 / divisor of its steps or, if it has none, of its labelled examples.
RunConfig shortened(RunConfig config, int64_t divisor);

/// Adds a problem if trials cannot be shortened, or would have no validation to be compared by.
void check_tunable(const RunConfig& config, Problems& problems);

/// A key in which the configurations differ although their validation results then cannot be compared, or differ by
/// chance alone: the data, the seed. Empty if there is none.
std::string incomparable_key(const RunConfig& a, const RunConfig& b);

}  // namespace capstan
