// How fast a run is and how long it will take: for the progress bar, metrics and plans. Results of training do not
// depend on it. tests/train/test_pace.cpp.
#pragma once

#include <cstdint>

#include "core/io/progress.hpp"

namespace capstan {

class Pace {
 public:
  /// `total_steps` 0 means not known; an interval of 0 means only at the end; `max_seconds` 0 means no limit.
  struct Plan {
    int64_t total_steps = 0, valid_every = 0, save_every = 0;
    double max_seconds = 0;
    double evaluation_steps = 0;  // steps that take as long as an evaluation, until there was one; 0: none is made
    double save_seconds = 0;      // until there was one
  };
  explicit Pace(const Plan& plan) : plan_(plan) {}

  /// What this session has measured. Call them after every step, evaluation and checkpoint.
  void step_took(double seconds, int64_t tokens);
  void evaluation_took(double seconds) { evaluation_ = seconds; }
  void save_took(double seconds) { save_ = seconds; }
  /// What an evaluation and a checkpoint will cost (Plan).
  void expect_evaluations(double steps) { plan_.evaluation_steps = steps; }
  void expect_saves(double seconds) { plan_.save_seconds = seconds; }

  /// Tokens per second of steps, without evaluations and checkpoints, since the last call of start_window() or, right
  /// after it, between the last two calls.
  double tokens_per_second() const {
    return window_seconds_ > 0 ? static_cast<double>(window_tokens_) / window_seconds_ : rate_before_;
  }
  void start_window();

  /// Seconds from `step` to the end, negative when not known; `elapsed`: seconds of the run so far. A step costs the
  /// mean of the last steps of this session, a quarter to half of them and at most 200, without the first one: a run
  /// begins slowly, since new rows of tables touch new memory. The remaining evaluations and checkpoints, those at the
  /// end included, cost what the last one took.
  double time_left(int64_t step, double elapsed) const;
  /// The share of the steps or of the time that is done, whichever is more; 0 if neither is limited.
  double share_done(int64_t step, double elapsed) const;

 private:
  double steps_left(int64_t step) const;
  /// Seconds of an evaluation, where a step takes `step` seconds, and of saving a checkpoint.
  double evaluation(double step) const {
    if (plan_.evaluation_steps <= 0) return 0;
    return evaluation_ >= 0 ? evaluation_ : plan_.evaluation_steps * step;
  }
  double save() const { return save_ >= 0 ? save_ : plan_.save_seconds; }

  Plan plan_;
  double counted_seconds_ = 0;  // of the last steps of this session, whose number is counted_steps_
  int64_t counted_steps_ = 0;
  int64_t session_steps_ = 0;           // steps of this session without the first
  double first_ = -1;                   // seconds of the session's first step, which count until there is a second
  double evaluation_ = -1, save_ = -1;  // seconds of the last one; -1: there was none
  double window_seconds_ = 0, rate_before_ = 0;
  int64_t window_tokens_ = 0;
};

}  // namespace capstan
