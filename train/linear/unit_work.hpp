// Units of work that threads share out, of which a run that was killed repeats none that it had saved. For
// cross-validation and for solving with all rows; the results are those of an unbroken run:
// tests/train/linear/test_unit_work.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "train/linear/work_file.hpp"

namespace capstan {

/// A unit that is being worked on.
struct UnitRun {
  WorkFile unfinished;  // UnitWork::finished() removes it once the results are in the common file
  Progress* progress;   // may be null
  double work;          // what `progress` is told for the whole unit
  double told = 0;      // what `progress` has been told so far
  /// The share of the unit that is done, as far as that can be known.
  void tell(double share) {
    const double done = std::max(told, work * std::min(share, 1.0));
    if (progress != nullptr) progress->add(done - told);
    told = done;
  }
};

/// Which units are finished, with their results, in one WorkFile. A unit that takes long keeps its
/// unfinished work in a second WorkFile that is its own. Units may finish on any thread.
class UnitWork {
 public:
  struct Units {
    int64_t count;
    /// How long a unit takes, for progress.
    std::function<double(int64_t unit)> work;
    /// The result of a finished unit as bytes, and back: false if it has another size.
    std::function<std::string(int64_t unit)> bytes;
    std::function<bool(int64_t unit, const std::string& bytes)> take;
  };

  /// Takes the results that the file has. `name`: of the file. `identity`: what else the results depend on.
  UnitWork(const WorkPlace& place, std::string name, std::string identity, Units units);

  /// solve(unit, run) for all units that are not done. `progress` (may be null) gets the work of all units. May stop.
  void run(Progress* progress, const std::function<void(int64_t unit, UnitRun& run)>& solve);
  /// Call it when the results of units are complete and will not change: from now on they may be saved at any time.
  void finished(const std::vector<int64_t>& units);

 private:
  bool is_done(int64_t unit) const { return done_[static_cast<size_t>(unit)] != 0; }
  WorkFile file_of(int64_t unit) const;
  void load();

  WorkPlace place_;
  std::string name_, identity_;
  Units units_;
  std::mutex mutex_;
  WorkFile file_;
  std::vector<char> done_;         // by unit; only the thread that has a unit reads its place
  std::vector<int64_t> in_order_;  // the units that the file gets, in the order in which they were done
  size_t cleared_ = 0;             // how many of in_order_ have no file of their own any more
};

/// Appends the bytes of numbers to a text.
template <class T>
void append_bytes(std::string& to, const T* numbers, size_t count) {
  to.append(reinterpret_cast<const char*>(numbers), count * sizeof(T));
}

/// Reads numbers from bytes, in turn. The caller has checked that there are enough.
class ByteReader {
 public:
  explicit ByteReader(const std::string& bytes) : bytes_(bytes) {}
  template <class T>
  T next() {
    T number;
    std::memcpy(&number, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return number;
  }
  template <class T>
  void next(T* numbers, size_t count) {
    if (count > 0) std::memcpy(numbers, bytes_.data() + at_, count * sizeof(T));
    at_ += count * sizeof(T);
  }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

}  // namespace capstan
