// Files of what a run has worked out that no checkpoint has yet, in its folder, so that a run that is killed does not
// begin again. They are removed at the end, and no other file whose name ends so. A file that another version wrote
// must not be taken up: a change of what is written raises the number in work_file.cpp.
// tests/train/linear/test_unit_work.cpp, test_fit_adagrad.cpp, tests/cli/long_linear_kills.sh.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/io/file.hpp"
#include "core/io/progress.hpp"

namespace capstan {

/// Where a run keeps unfinished work, and what the work depends on. Without a folder, nothing is kept.
struct WorkPlace {
  std::string folder, identity;  // identity: work of another one is not taken up
};

/// A file that is replaced every 30 seconds or, where that would take more than 2 % of the time, less often. It is
/// there whole or not at all, and a file of other work, or one that does not match its checksum, counts as none.
class WorkFile {
 public:
  static constexpr const char* ending = ".work";
  struct Saved {
    RegularFile file;  // open, at the beginning of the content
    /// Reads what comes next; false if there is less.
    bool read(void* to, size_t size) { return file.read(to, size) == size; }
  };

  /// `name`: of the file. `identity`: what else its content depends on. Throws Error for a folder or link of that name.
  WorkFile(const WorkPlace& place, const std::string& name, const std::string& identity);

  /// What the file has; none if there is no file, one of other work or, with a warning, a damaged one.
  std::optional<Saved> load() const;
  /// Is it time to save?
  bool due() const { return !path_.empty() && since_.seconds() > wait_; }
  /// Replaces the file by what `content` writes; does nothing without a folder.
  void save(const std::function<void(FileWriter& to)>& content);
  void remove() const;

  /// Removes all such files of a run that is finished, known by their content.
  static void remove_all(const std::string& folder);

 private:
  std::string path_, identity_;
  Stopwatch since_;  // since the last time that the file was saved
  double wait_;      // seconds from one time that it is saved to the next
};

}  // namespace capstan
