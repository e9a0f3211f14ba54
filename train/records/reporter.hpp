// Progress of a run: lines in train.log and where messages go (core/io/log.hpp), and on a terminal a bar with the time
// left. All of train/ reports by it, through RunProgress. tests/cli/training/test_progress.cpp, test_log.cpp and
// test_terminal.cpp.
#pragma once

#include <memory>
#include <string>

#include "core/io/log.hpp"
#include "core/io/progress.hpp"
#include "train/configuration/train_config.hpp"

namespace capstan {

class Reporter {
 public:
  /// Appends to `log_file`. With mode `none` only warnings are shown. Without a file, nothing is shown or written: one
  /// of several ranks reports for all.
  Reporter(ProgressMode mode, const std::string& log_file);
  ~Reporter();
  Reporter(Reporter&& other) noexcept;

  /// A line that is usually not shown, for users who look for a cause.
  void debug(const std::string& line);
  void info(const std::string& line);
  /// A line for the file alone, which has been shown.
  void note(const std::string& line);
  void warn(const std::string& line);
  /// A line of which a run has many: with mode `plain` all of them, otherwise as many as `kind` lets through; the
  /// others have the level `debug`. They go to the file and are shown, unless a bar shows the same.
  void often(RateLimiter& kind, double share_done, const std::string& line, bool beside_bar);
  /// Call it at every step: updates the bar, at most five times per second. `line` is called only when it is needed.
  template <class Line>
  void tick(double done, const Line& line) {
    if (tick_due()) show_now(done, line());
  }
  /// Updates the bar at once, where there is one: before a long pause, and at the end.
  void show_now(double done, const std::string& line);
  /// Takes lines about long work; empty if no progress is shown. Of work that is `repeated` all through a run, no line
  /// is logged, but a bar shows it.
  LogLine of_work(bool repeated);

 private:
  struct Shown;
  bool tick_due() const;

  void log(LogLevel level, const std::string& line, bool shown);

  std::unique_ptr<Shown> shown_;  // the file and the bar; null: nothing is shown or written
};

/// Memory of this process in bytes, now and at its peak.
int64_t resident_bytes();
int64_t peak_resident_bytes();

}  // namespace capstan
