// Search for a better configuration in a given time.
#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "run/training/child_run.hpp"
#include "run/training/halving.hpp"
#include "run/training/sweep.hpp"

namespace capstan {

struct AutotuneOptions {
  ConfigOptions config;  // with a key `sweep`, or the values of usual_search_space() are tried
  double minutes = 5;    // for all calls together; the first run is never cut short
  TrainRunOptions run;
};

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

}  // namespace capstan
