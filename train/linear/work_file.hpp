// What a run has worked out that no checkpoint has yet.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/io/file.hpp"
#include "core/io/progress.hpp"

namespace capstan {

/// Where a run keeps unfinished work, and what the work depends on. Without a folder, nothing is kept.
struct WorkPlace {
  std::string folder, identity;
};

/// A file of numbers and arrays that is replaced every 30 seconds or, where that would take more than 2 % of the time,
/// less often. It is there whole or not at all, and one of other work counts as none.
class WorkFile {
 public:
  struct Saved {
    std::vector<int64_t> numbers;
    RegularFile rest;
    /// False if there is less.
    bool read(void* to, size_t size) { return rest.read(to, size) == size; }
  };

  /// `name`: of the file. `identity`: what else its content depends on.
  WorkFile(const WorkPlace& place, const std::string& name, const std::string& identity);

  std::optional<Saved> load() const;
  bool due() const { return !path_.empty() && since_.seconds() > wait_; }
  void save(const std::vector<int64_t>& numbers, const std::function<void(FileWriter& to)>& rest);
  void remove() const;

  /// Removes all such files of a run that is finished.
  static void remove_all(const std::string& folder);

 private:
  std::string path_, identity_;
  Stopwatch since_;
  double wait_;
};

}  // namespace capstan
