// Units of work that threads share out, of which a run that was killed repeats none that it had saved. For
// cross-validation and for solving with all rows; the results are those of an unbroken run:
// tests/train/linear/test_unfinished.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "train/linear/work_file.hpp"

namespace capstan {

/// Numbers that units of work fill in, by name.
struct FilledNumbers {
  std::string name;
  std::vector<int64_t> shape;
  float* values;
};

/// Which units are finished, and what they have filled in, in one WorkFile.
class UnitWork {
 public:
  /// Takes what the file has.
  UnitWork(WorkFile file, int64_t units, std::vector<FilledNumbers> numbers);

  /// Says which share of a unit is done, as far as that can be known.
  using TellShare = std::function<void(double share)>;
  /// Fills in what a unit has found. May be empty.
  using FillIn = std::function<void()>;
  /// solve(unit, tell) on any thread for all units that are not finished. What it returns is called for one unit at a
  /// time, in no particular order. `progress` (may be null) gets `work` for each unit. May stop.
  void run(Progress* progress, double work, const std::function<FillIn(int64_t unit, const TellShare& tell)>& solve);

 private:
  void finish(int64_t unit, const FillIn& fill_in);

  WorkFile file_;
  std::vector<FilledNumbers> numbers_;
  std::mutex mutex_;
  std::vector<float> finished_;  // by unit: 1 or 0
};

}  // namespace capstan
