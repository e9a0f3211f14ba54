// The learning rate as a pure function of the step: a resumed run needs nothing else to go on with it. Its values are
// those of runs that exist: tests/train/test_schedule.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/schema.hpp"

namespace capstan {

enum class ScheduleShape { constant, linear, cosine, inverse_sqrt };
inline std::vector<EnumName<ScheduleShape>> enum_names(ScheduleShape) {
  return {{ScheduleShape::constant, "constant"},
          {ScheduleShape::linear, "linear"},
          {ScheduleShape::cosine, "cosine"},
          {ScheduleShape::inverse_sqrt, "inverse_sqrt"}};
}

/// The keys of train.schedule, whose help is in describe().
struct ScheduleConfig {
  ScheduleShape shape = ScheduleShape::cosine;
  int64_t warmup_steps = 0;
  double warmup_fraction = 0;
  double final_fraction = 0.1;
};
template <class Fields>
void describe(Fields& f, ScheduleConfig& c) {
  f("shape", c.shape, any(), "how the learning rate changes after the warm-up");
  f("warmup_steps", c.warmup_steps, count_from(0), "steps over which the learning rate rises to its peak");
  f("warmup_fraction", c.warmup_fraction, between(0, 1), "the same as a share of all steps; set only one of the two");
  f("final_fraction", c.final_fraction, between(0, 1),
    "for linear and cosine: the final learning rate as a share of the peak");
}

/// What is wrong with a schedule, in words; empty when nothing is. `known_end`: whether the number of steps is known.
std::string schedule_problem(const ScheduleConfig& config, bool known_end);

/// The learning rates of a run.
class Schedule {
 public:
  /// `total_steps` is 0 when the end is not known. Throws ConfigError when both warm-ups are given, and when the shape
  /// or warmup_fraction needs an end that is not known.
  Schedule(const ScheduleConfig& config, double peak, int64_t total_steps);

  /// Learning rate of the update after `step` others. Warm-up over W steps: peak (step + 1) / W; then with p the share
  /// of the remaining steps that is done: linear and cosine fall from peak to final_fraction * peak and stay there;
  /// inverse_sqrt: peak sqrt(W / (step + 1)).
  double rate(int64_t step) const;

  int64_t warmup() const { return warmup_; }
  /// What happens to the schedule at `step`, for the log; empty when nothing does.
  std::string event(int64_t step) const;

 private:
  double progress(int64_t step) const;

  ScheduleConfig config_;
  double peak_;
  int64_t total_;   // steps; 0: not known
  int64_t warmup_;  // steps
};

}  // namespace capstan
