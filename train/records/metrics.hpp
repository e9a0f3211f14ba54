// metrics.jsonl: one JSON object per line, in the order of steps.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/io/file.hpp"

namespace capstan {

class MetricsFile {
 public:
  /// Opens the file to append, after cutting lines of later steps than `step` and half-written ones, so that a resumed
  /// run leaves no line twice.
  MetricsFile(const std::string& path, int64_t step);

  /// `line` must have an integer "step". In the file when it returns.
  void add(const nlohmann::json& line);

 private:
  FileWriter file_;
};

}  // namespace capstan
