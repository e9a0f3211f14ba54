// Log lines on the progress of long work on texts.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace capstan {

/// Takes lines for the log. May be empty.
using LogLine = std::function<void(const std::string& line)>;

/// Logs "tokenising: 512 of 2048 MB, 31 MB/s" every ten seconds.
class Progress {
 public:
  /// `bytes`: of all the work; 0 = not known.
  Progress(LogLine log, std::string work, size_t bytes, double seconds_between = 10)
      : log_(std::move(log)), work_(std::move(work)), bytes_(bytes), between_(seconds_between) {}

  void add(size_t bytes);
  /// The last line: "tokenising: 2048 MB in 66 s, 31 MB/s". Only after an earlier line.
  void finish() const;

 private:
  using Clock = std::chrono::steady_clock;
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  LogLine log_;
  std::string work_;
  size_t bytes_, done_ = 0;
  double between_, logged_ = 0;
  Clock::time_point start_ = Clock::now();
};

}  // namespace capstan
