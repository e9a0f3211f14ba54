// The keys of the configuration in which runs differ: the columns of their tables. tests/run/test_run_table.cpp holds
// them.
#pragma once

#include <string>
#include <vector>

#include "run/summaries/run_record.hpp"

namespace capstan {

/// A key in which the runs differ, with its value in each run.
struct DifferingKey {
  std::string path, short_name;  // short_name: the shortest suffix that no other differing key has
  std::vector<std::string> values;
};
/// Among the keys that all runs have.
std::vector<DifferingKey> differing_keys(const std::vector<RunRecord>& runs);
/// A text that is the same for runs which repeat each other: keys and values without names, seed and data.fold.
std::string repeated_settings(const RunRecord& run);

/// For each path the shortest suffix that is meaningful and not a suffix of another path.
std::vector<std::string> short_names(const std::vector<std::string>& paths);

}  // namespace capstan
