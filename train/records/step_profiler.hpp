// A bounded stretch of a run's steps under a profile.
#pragma once

#include <cstdint>
#include <functional>

#include "core/machine/profile.hpp"

namespace capstan {

/// Profiles `steps` steps after the first `warmup` ones, in which memory is touched for the first time and kernels are
/// set up. Training computes the same bits with it and without.
class StepProfiler {
 public:
  /// `report` gets the profile once, when the stretch is complete or the run has ended.
  StepProfiler(int64_t warmup, int64_t steps, std::function<void(const Profile&)> report)
      : warmup_(warmup), steps_(steps), report_(std::move(report)) {}

  /// To be called before every step of the run: what to profile it into, or null.
  Profile* next_step() {
    if (seen_++ < warmup_) return nullptr;
    if (profile_.steps() < steps_) return &profile_;
    finish();
    return nullptr;
  }
  /// The run has ended: reports what there is, if it was not reported yet.
  void finish() {
    if (!reported_) report_(profile_);
    reported_ = true;
  }

 private:
  int64_t warmup_, steps_;
  std::function<void(const Profile&)> report_;
  Profile profile_;
  int64_t seen_ = 0;
  bool reported_ = false;
};

}  // namespace capstan
