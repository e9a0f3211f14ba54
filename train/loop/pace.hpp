// How fast a run is and how long it will take. Results of training do not depend on it.
#pragma once

#include <chrono>
#include <cstdint>

namespace capstan {

/// Seconds of wall time since its construction.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class Pace {
 public:
  /// An interval of 0 means never; `total_steps` 0 means not known.
  struct Plan {
    int64_t total_steps = 0, valid_every = 0, save_every = 0;
  };
  explicit Pace(const Plan& plan) : plan_(plan) {}

  void step_took(double seconds, int64_t tokens);
  void evaluation_took(double seconds) { evaluation_ = seconds; }
  void save_took(double seconds) { save_ = seconds; }

  /// Since the last call of start_window(), without evaluations and checkpoints.
  double tokens_per_second() const {
    return window_seconds_ > 0 ? static_cast<double>(window_tokens_) / window_seconds_ : 0;
  }
  void start_window();

  /// Seconds from `step` to the end: steps at their mean cost in this session, the remaining evaluations and
  /// checkpoints at the cost of the last one. Negative when not known.
  double time_left(int64_t step) const;

 private:
  Plan plan_;
  double steps_ = 0;  // seconds in steps of this session
  int64_t count_ = 0;
  double evaluation_ = 0, save_ = 0;
  double window_seconds_ = 0;
  int64_t window_tokens_ = 0;
};

}  // namespace capstan
