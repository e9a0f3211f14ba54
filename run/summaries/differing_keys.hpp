// The keys of the configuration in which runs differ.
#pragma once

#include <string>
#include <vector>

#include "run/summaries/run_record.hpp"

namespace capstan {

/// A key in which the runs differ, with its value in each run. Keys that only some of the runs have are left out: there
/// a `type` or the length of a list differs, which is a key itself.
struct DifferingKey {
  std::string path, short_name;  // short_name: the shortest suffix that no other differing key has
  std::vector<std::string> values;
};
std::vector<DifferingKey> differing_keys(const std::vector<RunRecord>& runs);
/// All that two runs have in common if they repeat each other: keys and values without names, seed and data.fold.
std::string repeated_settings(const RunRecord& run);

/// For each path the shortest suffix that is meaningful and not a suffix of another path.
std::vector<std::string> short_names(const std::vector<std::string>& paths);

}  // namespace capstan
