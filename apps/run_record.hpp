// What a run folder tells about a run without its weights: the configuration and metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "apps/run_config.hpp"

namespace capstan {

struct RunRecord {
  std::string folder;
  RunConfig config;
  int64_t step = 0;              // the last that metrics.jsonl tells of
  double seconds = 0;            // of training until then
  double train_loss = 0;         // the last
  double tokens_per_second = 0;  // median over the lines of training
  int64_t peak_rss_bytes = 0;
  struct Validation {
    int64_t step = 0;
    double loss = 0, accuracy = 0;
  };
  std::optional<Validation> best;  // by loss
};

/// Throws Error when the folder is no run's, or its metrics tell of no step yet.
RunRecord read_record(const std::filesystem::path& folder);

/// Keys in which the runs differ, each with its value in every run (in their order). Keys that only some of the runs
/// have are left out: the `type` above them differs, or the number of entries of a list, and those are keys too.
struct DifferingKey {
  std::string path, short_name;  // short_name: the shortest end of the path that no other differing key has
  std::vector<std::string> values;
};
std::vector<DifferingKey> differing_keys(const std::vector<RunRecord>& runs);

}  // namespace capstan
