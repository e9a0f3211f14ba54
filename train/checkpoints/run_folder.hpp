// The folder of a run while a process trains in it: its lock, its files, and the check that all ranks see the same one.
// tests/train/test_loop.cpp ("a run folder belongs to one process") and test_run_files.cpp.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/io/file.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/ranks/communicator.hpp"

namespace capstan {

/// Creates the folder, makes sure that no other process trains in it, and cleans up after a killed one. Of several
/// ranks, only rank 0 does.
class RunFolder {
 public:
  /// Throws Error when the folder cannot be written, another process holds it or it has files of the user's that
  /// training would replace, and when not all ranks see the same one.
  RunFolder(std::filesystem::path folder, Communicator& ranks);

  std::string metrics_file() const { return (folder_ / "metrics.jsonl").string(); }
  std::string log_file() const { return (folder_ / "train.log").string(); }
  Checkpoints& checkpoints() { return checkpoints_; }

 private:
  std::filesystem::path folder_;
  std::optional<FileLock> lock_;
  Checkpoints checkpoints_;
};

}  // namespace capstan
