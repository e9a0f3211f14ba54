// Means of the seconds of recent steps, in which old ones count less and less, and the times left that follow from
// them. tests/train/test_pace.cpp has the examples: a slow start, a pause, evaluations to come.
#include "train/records/pace.hpp"

#include <algorithm>

namespace capstan {

void Pace::step_took(double seconds, int64_t tokens) {
  window_seconds_ += seconds;
  window_tokens_ += tokens;
  if (first_ < 0) {
    first_ = seconds;
    return;
  }
  // Halving both keeps the mean, and makes room for new steps to count more than old ones.
  if (counted_steps_ >= std::clamp<int64_t>(++session_steps_ / 2, 20, 200)) {
    counted_seconds_ /= 2;
    counted_steps_ /= 2;
  }
  counted_seconds_ += seconds;
  ++counted_steps_;
}

void Pace::start_window() {
  rate_before_ = tokens_per_second();
  window_seconds_ = 0;
  window_tokens_ = 0;
}

double Pace::time_left(int64_t step, double elapsed) const {
  const double left = steps_left(step);
  if (plan_.max_seconds <= 0) return left;
  const double until_limit = std::max(0.0, plan_.max_seconds - elapsed);
  return left < 0 ? until_limit : std::min(left, until_limit);
}

double Pace::share_done(int64_t step, double elapsed) const {
  const double steps = plan_.total_steps > 0 ? static_cast<double>(step) / static_cast<double>(plan_.total_steps) : 0.0;
  const double time = plan_.max_seconds > 0 ? elapsed / plan_.max_seconds : 0.0;
  return std::min(1.0, std::max(steps, time));
}

/// Seconds that the remaining steps will take, with evaluations and checkpoints.
double Pace::steps_left(int64_t step) const {
  if (plan_.total_steps <= 0 || first_ < 0) return -1;
  const double each = counted_steps_ > 0 ? counted_seconds_ / static_cast<double>(counted_steps_) : first_;
  // How often something is due: at every multiple of the interval that is still to come, and at the end.
  const auto to_come = [&](int64_t every) {
    const int64_t times = every > 0 ? (plan_.total_steps - 1) / every - step / every : 0;
    return static_cast<double>(step < plan_.total_steps ? times + 1 : 0);
  };
  return static_cast<double>(plan_.total_steps - step) * each + to_come(plan_.valid_every) * evaluation(each) +
         to_come(plan_.save_every) * save();
}

}  // namespace capstan
