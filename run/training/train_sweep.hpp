// Training the runs of a sweep.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "run/training/child_run.hpp"
#include "run/training/sweep.hpp"

namespace capstan {

struct SweepEnd {
  bool interrupted = false;         // by a signal; the same call goes on
  std::vector<std::string> failed;  // "runs/rates/lr=1: exit code 1"
};

/// Trains the runs that are not finished one after the other, each in a process of its own; one that fails does not
/// stop the others. `table`, unless interrupted, receives a comparison of the runs, as print_comparison() writes it.
SweepEnd train_sweep(const Sweep& sweep, const TrainRunOptions& options, const Guard& guard, std::ostream& table,
                     size_t width = 0);

}  // namespace capstan
