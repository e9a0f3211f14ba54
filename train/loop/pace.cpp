#include "train/loop/pace.hpp"

namespace capstan {

void Pace::step_took(double seconds, int64_t tokens) {
  steps_ += seconds;
  ++count_;
  window_seconds_ += seconds;
  window_tokens_ += tokens;
}

void Pace::start_window() {
  window_seconds_ = 0;
  window_tokens_ = 0;
}

double Pace::time_left(int64_t step) const {
  if (plan_.total_steps <= 0 || count_ == 0) return -1;
  const auto to_come = [&](int64_t every) {
    const int64_t times = every > 0 ? plan_.total_steps / every - step / every : 0;
    return static_cast<double>(times);
  };
  return static_cast<double>(plan_.total_steps - step) * steps_ / static_cast<double>(count_) +
         to_come(plan_.valid_every) * evaluation_ + to_come(plan_.save_every) * save_;
}

}  // namespace capstan
