// The folder of a run while a process trains in it.
#pragma once

#include <filesystem>
#include <string>

#include "core/io/file.hpp"
#include "train/runs/checkpoint.hpp"

namespace capstan {

/// Creates the folder, makes sure that no other process trains in it, and cleans up after a killed one.
class RunFolder {
 public:
  /// Throws Error when the folder cannot be written or another process holds it.
  explicit RunFolder(std::filesystem::path folder);

  std::string metrics_file() const { return (folder_ / "metrics.jsonl").string(); }
  std::string log_file() const { return (folder_ / "train.log").string(); }
  Checkpoints& checkpoints() { return checkpoints_; }

 private:
  std::filesystem::path folder_;
  FileLock lock_;
  Checkpoints checkpoints_;
};

}  // namespace capstan
