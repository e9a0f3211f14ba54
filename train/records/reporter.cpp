#include "train/records/reporter.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string_view>

#include "core/base/no_copy.hpp"
#include "core/io/file.hpp"
#include "core/io/mapping_faults.hpp"
#include "core/strings/printable.hpp"
#include "train/records/log.hpp"

namespace capstan {
namespace {

using Clock = std::chrono::steady_clock;

/// A bar that fits on one line of the terminal, whose present width is asked for: without as many of the fields before
/// the last one as needed. The last column stays free: some terminals go to the next line as soon as it is written.
std::string cut_to_terminal(std::string bar) {
  constexpr std::string_view between = " : ";
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return bar;
  const size_t columns = size.ws_col - 1u;
  while (display_columns(bar) > columns) {
    const size_t last = bar.rfind(between);
    if (last == std::string::npos || last == 0) break;
    const size_t before = bar.rfind(between, last - 1);
    if (before == std::string::npos) break;
    bar.erase(before, last - before);
  }
  return std::string(first_columns(bar, columns));
}

/// "[2024-05-01 12:00:00] line", with everything printable.
std::string with_time(const std::string& line) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char time[32] = "";
  std::strftime(time, sizeof(time), "[%Y-%m-%d %H:%M:%S] ", &local);
  return time + printable(line) + '\n';
}

std::string draw_bar(double done) {
  constexpr int width = 20;
  const int full = static_cast<int>(std::clamp(done, 0.0, 1.0) * width);
  return fmt::format("[{}{}] {:3.0f}% ", std::string(static_cast<size_t>(full), '='),
                     std::string(static_cast<size_t>(width - full), ' '), 100 * done);
}

}  // namespace

/// stderr with a bar as its last line; log lines are printed above it.
class Reporter::Console {
 public:
  ~Console() { clear(); }
  void show(const std::string& bar) {
    bar_ = bar;
    std::fprintf(stderr, "\r\033[K%s", cut_to_terminal(bar_).c_str());
    std::fflush(stderr);
  }
  void print(const std::string& line) {
    if (!bar_.empty()) std::fputs("\r\033[K", stderr);
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fputs(cut_to_terminal(bar_).c_str(), stderr);
    std::fflush(stderr);
  }

 private:
  void clear() {
    if (!bar_.empty()) std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
  }

  std::string bar_;
};

/// Appends to a regular file and nothing else. A line that cannot be written (a full disk) is left out: the next
/// checkpoint reports it properly.
class Reporter::LogFile : NoCopy {
 public:
  /// Throws Error.
  explicit LogFile(const std::string& path) : descriptor_(open_own_file(path, O_WRONLY | O_CREAT | O_APPEND)) {
    set_fault_log(descriptor_);
  }
  ~LogFile() {
    set_fault_log(-1);
    ::close(descriptor_);
  }

  void write(std::string_view line) {
    while (!line.empty()) {
      const ssize_t written = ::write(descriptor_, line.data(), line.size());
      if (written <= 0) return;
      line.remove_prefix(static_cast<size_t>(written));
    }
  }

 private:
  int descriptor_;
};

struct Reporter::Sinks {
  explicit Sinks(const std::string& log_file) : file(log_file) {}

  void log(LogLevel level, const std::string& line, bool on_console) {
    const std::string text = with_time((level == LogLevel::warning ? "warning: " : "") + line);
    if (on_console && has_log_sink())
      log_message(level, line);
    else if (on_console)
      console.print(text);
    file.write(text);
  }

  bool bar = false, plain = false, lines = true;
  Console console;
  LogFile file;
  Clock::time_point shown = Clock::now();
};

Reporter::Reporter(ProgressMode mode, const std::string& log_file) {
  if (log_file.empty()) return;
  sinks_ = std::make_unique<Sinks>(log_file);
  const bool terminal = isatty(STDERR_FILENO) != 0 && !has_log_sink();
  sinks_->bar = mode == ProgressMode::bar || (mode == ProgressMode::automatic && terminal);
  sinks_->plain = !sinks_->bar && mode != ProgressMode::none;
  sinks_->lines = mode != ProgressMode::none;
}

Reporter::~Reporter() = default;

void Reporter::info(const std::string& line) {
  if (sinks_) sinks_->log(LogLevel::info, line, sinks_->lines);
}

void Reporter::warn(const std::string& line) {
  if (sinks_) sinks_->log(LogLevel::warning, line, true);
}

void Reporter::status(const std::string& line) {
  if (!sinks_) return;
  sinks_->log(LogLevel::info, line, sinks_->plain);
  if (sinks_->plain) sinks_->shown = Clock::now();
}

bool Reporter::tick_due() const {
  if (!sinks_) return false;
  const auto silence = Clock::now() - sinks_->shown;
  return sinks_->bar ? silence >= std::chrono::milliseconds(200) : sinks_->plain && silence >= std::chrono::seconds(30);
}

void Reporter::show_tick(double done, const std::string& line) {
  sinks_->shown = Clock::now();
  if (sinks_->bar)
    sinks_->console.show(draw_bar(done) + line);
  else
    info(line);
}

void Reporter::show_now(double done, const std::string& line) {
  if (sinks_ && sinks_->bar) show_tick(done, line);
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
