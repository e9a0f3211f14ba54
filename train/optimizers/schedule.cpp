// The formulas of the learning rate, all functions of the step alone. A changed bit would change every resumed run:
// tests/train/test_schedule.cpp has known values.
#include "train/optimizers/schedule.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/math.hpp"

namespace capstan {

std::string schedule_problem(const ScheduleConfig& config, bool known_end) {
  if (config.warmup_steps > 0 && config.warmup_fraction > 0) return "give warmup_steps or warmup_fraction, not both";
  const bool needs_end =
      config.shape == ScheduleShape::linear || config.shape == ScheduleShape::cosine || config.warmup_fraction > 0;
  if (!needs_end || known_end) return {};
  return fmt::format("shape {}{} needs an end: set train.steps or train.epochs", enum_name(config.shape),
                     config.warmup_fraction > 0 ? " with warmup_fraction" : "");
}

Schedule::Schedule(const ScheduleConfig& config, double peak, int64_t total_steps)
    : config_(config), peak_(peak), total_(total_steps), warmup_(config.warmup_steps) {
  if (const std::string problem = schedule_problem(config, total_ > 0); !problem.empty())
    throw ConfigError("train.schedule: " + problem);
  if (config.warmup_fraction > 0)
    warmup_ = static_cast<int64_t>(std::llround(config.warmup_fraction * static_cast<double>(total_)));
}

/// The share of the steps after the warm-up that is done.
double Schedule::progress(int64_t step) const {
  const int64_t done = step - warmup_, all = total_ - warmup_;
  return all > 0 ? std::min(1.0, static_cast<double>(done) / static_cast<double>(all)) : 1.0;
}

double Schedule::rate(int64_t step) const {
  if (step < warmup_) return peak_ * static_cast<double>(step + 1) / static_cast<double>(warmup_);
  const double rest = config_.final_fraction;
  switch (config_.shape) {
    case ScheduleShape::constant:
      return peak_;
    case ScheduleShape::linear:
      return peak_ * (1 - (1 - rest) * progress(step));
    case ScheduleShape::cosine:
      return peak_ * (rest + (1 - rest) * 0.5 * (1 + math::cos(M_PI * progress(step))));
    case ScheduleShape::inverse_sqrt:
      return peak_ * std::sqrt(static_cast<double>(std::max<int64_t>(warmup_, 1)) / static_cast<double>(step + 1));
  }
  return peak_;
}

std::string Schedule::event(int64_t step) const {
  if (step == 0) {
    return warmup_ > 0 ? fmt::format("schedule: warm-up over {} steps to learning rate {:.3g}, then {}", warmup_, peak_,
                                     enum_name(config_.shape))
                       : fmt::format("schedule: {} from learning rate {:.3g}", enum_name(config_.shape), peak_);
  }
  if (step == warmup_) return fmt::format("schedule: warm-up done at step {}, learning rate {:.3g}", step, rate(step));
  if (step == total_) return fmt::format("schedule: end reached at step {}, learning rate {:.3g}", step, rate(step));
  return {};
}

}  // namespace capstan
