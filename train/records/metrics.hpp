// metrics.jsonl: one JSON object per line, in the order of steps.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/io/file.hpp"

namespace capstan {

class MetricsFile {
 public:
  /// Opens the file for appending, after removing lines of steps after `step` and half-written ones, so that a resumed
  /// run has no line twice.
  MetricsFile(const std::string& path, int64_t step);

  /// `line` must have an integer "step". It has been written on return.
  void add(const nlohmann::json& line);

 private:
  FileWriter file_;
};

}  // namespace capstan
