// Writes the line of a terminal, or lines of a log at growing intervals. tests/core/io/test_progress.cpp.
#include "core/io/progress.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/base/stop.hpp"
#include "core/io/console.hpp"
#include "core/strings/quantities.hpp"

namespace capstan {

bool RateLimiter::due(double share) {
  bool is_due = since_.seconds() >= seconds_between_lines;
  if (share > 0) {
    const int part = static_cast<int>(std::min(share, 1.0) * most_);
    is_due = std::exchange(last_due_, std::max(last_due_, part)) < part || is_due;
  } else {
    ++calls_;
    is_due = (calls_ & (calls_ - 1)) == 0 || is_due;  // a power of two
  }
  if (is_due) since_ = {};
  return is_due;
}

Progress::Progress(LogLine log, std::string work, double total, ProgressUnit unit, double first_line)
    : log_(std::move(log)), work_(std::move(work)), total_(total), unit_(unit), next_line_(first_line) {}

Progress::~Progress() {
  if (visible_) show_console_line("");
}

void Progress::add(double done) {
  stop_point();
  const std::lock_guard lock(mutex_);
  done_ += done;
  if (log_) show(watch_.seconds());
}

void Progress::skip(double done) {
  const std::lock_guard lock(mutex_);
  if (done_ == skipped_) begun_ = watch_.seconds();  // until now, that work was looked for
  done_ += done;
  skipped_ += done;
  if (log_) show(watch_.seconds());
}

void Progress::begin(const std::string& work) {
  const std::lock_guard lock(mutex_);
  work_ = work;
  drawn_ = -1;  // at once
  if (log_) show(watch_.seconds());
}

void Progress::show(double now) {
  constexpr double between = 0.2;  // seconds between two drawings of the terminal's line
  const bool draws = now - drawn_ >= between, writes = now >= next_line_;
  if (!draws && !writes) return;
  if (draws) drawn_ = now;
  if (has_console()) {
    if (!draws) return;
    visible_ = true;
    show_console_line((total_ > 0 ? draw_bar(done_ / total_) : "") + work_ + figures(now, " : ", true));
  } else if (writes) {
    next_line_ = now < seconds_between_lines ? seconds_between_lines : now + seconds_between_lines;
    log_(work_ + (total_ > 0 ? fmt::format(": {:.0f} %", 100 * std::min(1.0, done_ / total_)) : "") +
         figures(now, ", ", false));
  }
}

/// The time that is left, amount and rate, as far as they are known.
std::string Progress::figures(double now, const char* between, bool bar) const {
  std::string left, rest;
  constexpr double known = 1e-4;  // share of the work from which on the time that is left is estimated
  const double own = done_ - skipped_, seconds = now - begun_;  // what this process has done, and in what time
  if (total_ > 0 && own > known * total_)
    left = between + fmt::format(fmt::runtime(bar ? "ETA {}" : "{} left"),
                                 short_time(seconds * (std::max(0.0, total_ - done_) + more_) / own + after_));
  if (*unit_.name != '\0') {
    const double whole = total_ / unit_.size, done = done_ / unit_.size;
    rest = between + (whole > 0 ? fmt::format("{:.0f} of {:.0f} {}", done, whole, unit_.name)
                                : fmt::format("{:.0f} {}", done, unit_.name));
    rest += between + fmt::format("{:.3g} {}/s", own / unit_.size / std::max(seconds, 1e-3), unit_.name);
  }
  return bar ? left + rest : rest + left;
}

}  // namespace capstan
