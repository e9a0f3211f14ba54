// Progress of a run: lines in train.log and on stderr, and on a terminal a bar with the time left. Where a program has
// a log sink (log.hpp), that takes the place of stderr, and there is no bar.
#pragma once

#include <memory>
#include <string>

#include "core/strings/amounts.hpp"
#include "train/checkpoints/config.hpp"

namespace capstan {

/// What messages quote is made printable (core/strings/printable.hpp). The bar is cut to the width of the terminal.
class Reporter {
 public:
  /// Appends to `log_file`. With mode `none` only warnings go to stderr. Without a file, nothing is shown or written:
  /// one of several ranks reports for all.
  Reporter(ProgressMode mode, const std::string& log_file);
  ~Reporter();

  void info(const std::string& line);
  void warn(const std::string& line);
  /// The line of a logged step: to the file, and to stderr unless a bar is shown.
  void status(const std::string& line);
  /// Call it at every step: updates the bar (at most five times per second), or prints a line when there was none for
  /// 30 seconds. `line` is called only when it is needed.
  template <class Line>
  void tick(double done, const Line& line) {
    if (tick_due()) show_tick(done, line());
  }
  /// Updates the bar at once, where there is one: before a long pause, and at the end.
  void show_now(double done, const std::string& line);

 private:
  class Console;
  class LogFile;
  struct Sinks;
  bool tick_due() const;
  void show_tick(double done, const std::string& line);

  std::unique_ptr<Sinks> sinks_;  // null: nothing is shown or written
};

/// Memory of this process in bytes, now and at its peak.
int64_t resident_bytes();
int64_t peak_resident_bytes();

}  // namespace capstan
