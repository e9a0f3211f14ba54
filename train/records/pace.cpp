#include "train/records/pace.hpp"

#include <algorithm>

namespace capstan {

void Pace::step_took(double seconds, int64_t tokens) {
  constexpr int64_t remembered = 200;
  if (count_ == remembered) {
    steps_ /= 2;
    count_ /= 2;
  }
  steps_ += seconds;
  ++count_;
  window_seconds_ += seconds;
  window_tokens_ += tokens;
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
  if (plan_.total_steps <= 0 || count_ == 0) return -1;
  const double each = steps_ / static_cast<double>(count_);
  // At every multiple of the interval that is to come, and at the end.
  const auto to_come = [&](int64_t every) {
    const int64_t times = every > 0 ? (plan_.total_steps - 1) / every - step / every : 0;
    return static_cast<double>(step < plan_.total_steps ? times + 1 : 0);
  };
  double left = static_cast<double>(plan_.total_steps - step) * each;
  if (plan_.evaluation_steps > 0)
    left += to_come(plan_.valid_every) * (evaluation_ >= 0 ? evaluation_ : plan_.evaluation_steps * each);
  return left + to_come(plan_.save_every) * (save_ >= 0 ? save_ : plan_.save_seconds);
}

}  // namespace capstan
