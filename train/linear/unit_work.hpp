// Units of work that threads share out, of which a run that was killed repeats none that it had saved. For
// cross-validation and for solving with all rows; the results are those of an unbroken run:
// tests/train/linear/test_unit_work.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
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

/// Numbers in memory of which each is `step` numbers after the one before.
struct StridedNumbers {
  template <class T>
  StridedNumbers(T* from, int64_t how_many, int64_t step = 1)
      : first(reinterpret_cast<char*>(from)),
        count(how_many),
        size(sizeof(T)),
        distance(step * static_cast<int64_t>(sizeof(T))) {}
  char* at(int64_t i) const { return first + i * distance; }

  char* first;
  int64_t count;
  size_t size;       // of a number, in bytes
  int64_t distance;  // from one to the next, in bytes
};

/// Which units are finished, with their results, in one WorkFile. A unit that takes long keeps its
/// unfinished work in a second WorkFile that is its own. Units may finish on any thread.
class UnitWork {
 public:
  struct Units {
    int64_t count;
    /// How long a unit takes, for progress.
    std::function<double(int64_t unit)> work;
    /// Where the result of a unit is in memory, which the file has and gives back.
    std::function<std::vector<StridedNumbers>(int64_t unit)> result;
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

}  // namespace capstan
