// The learning rate as a pure function of the step: a resumed run needs nothing else to go on with it. Its values are
// those of runs that exist: tests/train/test_schedule.cpp and test_second_look.cpp.
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

/// A second look at the number of steps that was planned (run/training/plan.hpp).
struct Correction {
  int64_t step = 0;   // where it was taken or, with steps 0, will be taken at the latest; 0: the run is not looked at
  int64_t steps = 0;  // the number of steps since; 0: there was none yet
  // The plan that was looked at: its number of steps and its time. 0: not known, in a run of version 0.2.
  int64_t planned_steps = 0;
  double planned_minutes = 0;
};
template <class Fields>
void describe(Fields& f, Correction& c) {
  f("step", c.step, count_from(0), "where it was; with steps 0, where it will be at the latest");
  f("steps", c.steps, count_from(0), "the number of steps since; 0 = not yet known");
  f("planned_steps", c.planned_steps, count_from(0),
    "train.steps of the plan; with another train.steps, all of train.corrected is left out");
  f("planned_minutes", c.planned_minutes, between(0, 1e6), "train.minutes of the plan");
}

/// What is wrong with a schedule, in words; empty when nothing is. `known_end`: whether the number of steps is known.
std::string schedule_problem(const ScheduleConfig& config, bool known_end);

/// The learning rates of a run.
class Schedule {
 public:
  /// `total_steps` is 0 when the end is not known. Throws ConfigError when both warm-ups are given, and when the shape
  /// or warmup_fraction needs an end that is not known. `corrected`: the warm-up stays as for total_steps; after it,
  /// from corrected.step on, p grows linearly from where it is to 1 at corrected.steps (0: no correction).
  Schedule(const ScheduleConfig& config, double peak, int64_t total_steps, const Correction& corrected = {});

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
  int64_t total_;   // steps, as planned; 0: not known
  int64_t warmup_;  // steps
  int64_t end_;     // the corrected number of steps; total_ without a correction
  int64_t bend_;    // the step from which the correction counts
};

}  // namespace capstan
