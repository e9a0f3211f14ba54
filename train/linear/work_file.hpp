// Files of what a run has worked out that no checkpoint has yet, in a folder of their own within that of the run, so
// that a run that is killed does not begin again. They are files of tensors, as checkpoints have, and gone at the end.
// A file that another version wrote must not be taken up: a change of what is written raises the number in
// work_file.cpp. tests/train/linear/test_unfinished.cpp, tests/cli/long_linear_kills.sh.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/io/progress.hpp"
#include "core/io/safetensors.hpp"

namespace capstan {

/// Where a run keeps unfinished work, and what the work depends on. Without a folder, nothing is kept.
struct WorkPlace {
  std::string folder, identity;  // of the run; work of another identity is not taken up
};

/// A file that is replaced every 30 seconds or, where that would take more than 2 % of the time, less often. It is
/// there whole or not at all, and a file of other work, or one that does not match its checksum, counts as none.
class WorkFile {
 public:
  static constexpr const char* folder_name = ".unfinished";  // in that of the run
  static constexpr const char* names[] = {"ngrams", "folds", "solving", "adagrad"};

  /// `name`: of the file, one of `names`. `identity`: what its content depends on besides that of the place.
  WorkFile(const WorkPlace& place, const std::string& name, const std::string& identity = "");

  /// What the file has; none if there is no file, one of other work or, with a warning, a damaged one.
  std::optional<SafetensorsFile> load() const;
  /// Is it time to save?
  bool due() const { return !path_.empty() && since_.seconds() > wait_; }
  /// Replaces the file; does nothing without a folder.
  void save(const std::vector<TensorToWrite>& tensors);

  /// Removes all such files of a run that is finished, and nothing else.
  static void remove_all(const std::string& folder);

 private:
  std::string path_, identity_;
  Stopwatch since_;  // since the last time that the file was saved
  double wait_;      // seconds from one time that it is saved to the next
};

}  // namespace capstan
