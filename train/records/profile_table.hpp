// `capstan train --profile`: which steps are profiled, and the profile as a text table. tests/train/test_profile.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/machine/profile.hpp"

namespace capstan {

/// The limits of the machine that rows are compared with: bytes per second of a triad (a = b + s c), operations per
/// second of an sgemm.
struct MachineRates {
  double bytes = 0, flops = 0;
};

/// A row per op and pass, the slowest first and time outside any op last; then the step, which is their sum; then a
/// legend. Times, bytes and operations are per step.
std::string to_text(const Profile& profile, const MachineRates& machine);

/// Profiles `steps` steps after the first `warmup` ones, which touch memory for the first time and set up kernels.
/// Training computes the same bits with and without it.
class StepProfiler {
 public:
  /// `report` is called once, with the profile, when `steps` steps are done or the run has ended.
  StepProfiler(int64_t warmup, int64_t steps, std::function<void(const Profile&)> report)
      : warmup_(warmup), steps_(steps), report_(std::move(report)) {}

  /// Call it before every step: the profile to record the step in, or null.
  Profile* next_step() {
    if (seen_++ < warmup_) return nullptr;
    if (profile_.steps() < steps_) return &profile_;
    finish();
    return nullptr;
  }
  /// Call it when the run has ended: reports, unless that was done before.
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
