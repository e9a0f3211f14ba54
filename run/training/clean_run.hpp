// Removes what a run has for resuming alone: `capstan clean`. Prediction and evaluation must work as before:
// tests/cli/runs/test_clean.cpp holds it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace capstan {

struct CleanedPart {
  std::filesystem::path path;  // a folder or a file
  int64_t bytes = 0;
};

struct CleanOptions {
  bool dry_run = false;     // change nothing
  bool unfinished = false;  // also a run that has not reached its end
};

/// Removes what Checkpoints::for_resuming() lists, and returns it: nothing of a run that is solved for. Throws Error
/// when the folder is not that of a run, when a process trains in it, when the best or the last checkpoint is damaged,
/// and for a run that has not reached its end unless the options allow it.
std::vector<CleanedPart> clean_run(const std::filesystem::path& folder, const CleanOptions& options);

/// "runs/mine: 82 MB on disk, 54 MB of it for resuming alone (capstan clean runs/mine removes it)", of a run or of a
/// folder with several.
std::string disk_line(const std::filesystem::path& folder);

}  // namespace capstan
