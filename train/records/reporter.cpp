// Decides for each message whether it goes to the file, to the screen or both, and redraws the bar at most five times
// a second. Ranks other than 0 have no log file and show nothing. tests/cli/training/test_progress.cpp and
// test_terminal.cpp.
#include "train/records/reporter.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "core/io/console.hpp"

namespace capstan {

struct Reporter::Shown {
  Shown(ProgressMode how, const std::string& log_file)
      : file(log_file), mode(how), bar(how == ProgressMode::bar || (how == ProgressMode::automatic && has_console())) {}
  ~Shown() { show_console_line(""); }

  RunLog file;
  ProgressMode mode;
  bool bar;
  Stopwatch since;  // since the bar was drawn
};

Reporter::Reporter(ProgressMode mode, const std::string& log_file) {
  if (!log_file.empty()) shown_ = std::make_unique<Shown>(mode, log_file);
}

Reporter::~Reporter() = default;
Reporter::Reporter(Reporter&& other) noexcept = default;

void Reporter::log(LogLevel level, const std::string& line, bool shown) {
  if (shown_) shown_->file.log(level, line, shown);
}

void Reporter::debug(const std::string& line) {
  log(LogLevel::debug, line, shown_ && shown_->mode != ProgressMode::none);
}

void Reporter::info(const std::string& line) {
  log(LogLevel::info, line, shown_ && shown_->mode != ProgressMode::none);
}

void Reporter::note(const std::string& line) { log(LogLevel::info, line, false); }

void Reporter::warn(const std::string& line) { log(LogLevel::warning, line, true); }

void Reporter::often(RateLimiter& kind, double share_done, const std::string& line, bool beside_bar) {
  if (!shown_) return;
  const bool due = kind.due(share_done) || shown_->mode == ProgressMode::plain;
  log(due ? LogLevel::info : LogLevel::debug, line, shown_->mode != ProgressMode::none && (beside_bar || !shown_->bar));
}

bool Reporter::tick_due() const {
  constexpr double between = 0.2;
  return shown_ && shown_->bar && shown_->since.seconds() >= between;
}

void Reporter::show_now(double done, const std::string& line) {
  if (!shown_ || !shown_->bar) return;
  shown_->since = {};
  show_console_line(draw_bar(done) + line);
}

LogLine Reporter::of_work(bool repeated) {
  if (!shown_ || shown_->mode == ProgressMode::none) return {};
  return [this, repeated](const std::string& line) {
    if (!repeated) info(line);
  };
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace capstan
