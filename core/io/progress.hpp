// How far long work is: a line of the terminal that is written again and again or, where there is none, a few lines.
// For tokenising, solving, evaluation and training; tests/core/io/test_progress.cpp holds what is said, and how often.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>

#include "core/base/no_copy.hpp"

namespace capstan {

/// Takes lines for the log. May be empty.
using LogLine = std::function<void(const std::string& line)>;

/// Seconds of wall time since its construction.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Seconds between two lines about the same work in a log: often enough to see that it goes on.
constexpr double seconds_between_lines = 30;

/// Decides whether a line is due, so that a log stays short: at most `most` lines in a run whose share done is known,
/// otherwise a line at the 1st, 2nd, 4th, 8th, ... call; and one where there was none for seconds_between_lines.
class RateLimiter {
 public:
  explicit RateLimiter(int most) : most_(most) {}
  /// `share`: of the run that is done; 0: not known.
  bool due(double share);

 private:
  int most_, last_due_ = -1;  // of the `most_` equal parts of the run, the one in which a line was last due
  long calls_ = 0;            // whose share was not known
  Stopwatch since_;           // since a line was last due
};

/// The unit in which progress is shown.
struct ProgressUnit {
  const char* name;  // "MB"; "": only the share of the whole is shown
  double size = 1;   // how much of Progress::add() is one unit
};
constexpr ProgressUnit in_megabytes{"MB", 1e6}, in_texts{"texts"}, in_shares{""};

/// One long piece of work. A terminal shows "[=====     ]  52% tokenising : ETA 32s : 1070 of 2048 MB : 31 MB/s" until
/// it is destroyed. Elsewhere the log gets "tokenising: 52 %, 1070 of 2048 MB, 31 MB/s, 32s left" after a second, and
/// then every seconds_between_lines. Any thread may add.
class Progress : NoCopy {
 public:
  /// Without `log`, nothing is shown. `total`: the amount of all the work, as add() counts it; 0 = not known.
  /// first_line: seconds after which the log gets its first line.
  Progress(LogLine log, std::string work, double total, ProgressUnit unit = in_megabytes, double first_line = 1);
  ~Progress();

  /// Adds an amount of work that is done. It is a stop point (core/base/stop.hpp).
  void add(double done);
  /// Adds work that an earlier process did: it counts as done, but not for the rate.
  void skip(double done);
  /// Begins another part of the work, with `work` as its name. Shown at once.
  void begin(const std::string& work);
  /// Adds `seconds` to the time shown as left: the expected time of work that follows this one.
  void expect_more_seconds(double seconds) { after_ = seconds; }
  /// Adds to the time shown as left what `amount` of work takes that follows this one and is as fast.
  void expect_more_work(double amount) { more_ = amount; }

 private:
  void show(double now);
  std::string figures(double now, const char* between, bool bar) const;

  std::mutex mutex_;
  LogLine log_;
  std::string work_;
  double total_, done_ = 0, skipped_ = 0, after_ = 0, more_ = 0, begun_ = 0;
  ProgressUnit unit_;
  double next_line_, drawn_ = 0;  // seconds: when the log gets its next line, when the terminal's was last written
  bool visible_ = false;
  Stopwatch watch_;
};

}  // namespace capstan
