// How fast a run is and how long it will take. Results of training do not depend on it.
#pragma once

#include <cstdint>
#include <deque>

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
  void set_total(int64_t steps) { plan_.total_steps = steps; }

  void step_took(double seconds, int64_t tokens);
  void evaluation_took(double seconds) { evaluation_ = seconds; }
  void save_took(double seconds) { save_ = seconds; }
  /// What an evaluation and a checkpoint will cost (Plan).
  void expect_evaluations(double steps) { plan_.evaluation_steps = steps; }
  void expect_saves(double seconds) { plan_.save_seconds = seconds; }

  /// Since the last call of start_window(), or right after it between the last two, without evaluations and
  /// checkpoints.
  double tokens_per_second() const {
    return window_seconds_ > 0 ? static_cast<double>(window_tokens_) / window_seconds_ : rate_before_;
  }
  void start_window();

  /// Seconds from `step` to the end: steps at the mean cost of a quarter to half of those of this session, the last
  /// ones, at most 200 and without its first, for short runs begin slowly: new rows of tables touch new memory; the
  /// remaining evaluations and checkpoints, those at the end included, at the cost of the last one. Negative when not
  /// known. `elapsed`: seconds of the run so far.
  double time_left(int64_t step, double elapsed) const;
  /// The mean seconds of the last steps: those of about 20 seconds, and at least 20; negative before the second step of
  /// this session. The first one, which touches the memory, does not count.
  double recent_step() const { return recent_.empty() ? -1 : recent_seconds_ / static_cast<double>(recent_.size()); }
  /// Seconds of so many more steps that take `each`, with their evaluations and checkpoints and those at the end.
  double seconds_for(double steps, double each) const;
  /// The share of the steps or of the time that is done, whichever is more; 0 if neither is limited.
  double share_done(int64_t step, double elapsed) const;

 private:
  double steps_left(int64_t step) const;
  /// Seconds of an evaluation, and of saving a checkpoint.
  double evaluation(double step) const {
    if (plan_.evaluation_steps <= 0) return 0;
    return evaluation_ >= 0 ? evaluation_ : plan_.evaluation_steps * step;
  }
  double save() const { return save_ >= 0 ? save_ : plan_.save_seconds; }

  Plan plan_;
  double steps_ = 0;  // seconds in the last steps of this session, and their number
  int64_t count_ = 0;
  int64_t all_ = 0;  // steps of this session
  std::deque<double> recent_;
  double recent_seconds_ = 0;
  double first_ = -1;                   // of this session: it touches the memory, and counts until there is a second
  double evaluation_ = -1, save_ = -1;  // -1: there was none
  double window_seconds_ = 0, rate_before_ = 0;
  int64_t window_tokens_ = 0;
};

}  // namespace capstan
