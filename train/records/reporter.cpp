#include "train/records/reporter.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <string_view>

#include "core/base/no_copy.hpp"
#include "core/io/console.hpp"
#include "core/io/file.hpp"
#include "core/io/mapping_faults.hpp"
#include "core/strings/printable.hpp"
#include "train/records/log.hpp"

namespace capstan {
namespace {

/// "[2024-05-01 12:00:00] line", with everything printable.
std::string with_time(const std::string& line) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char time[32] = "";
  std::strftime(time, sizeof(time), "[%Y-%m-%d %H:%M:%S] ", &local);
  return time + printable(line) + '\n';
}

}  // namespace

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
  ~Sinks() { show_console_line(""); }

  void log(LogLevel level, const std::string& line, bool on_console) {
    const std::string text = with_time((level == LogLevel::warning ? "warning: " : "") + line);
    if (on_console && has_log_sink())
      log_message(level, line);
    else if (on_console)
      print_to_console(text);
    file.write(text);
  }

  ProgressMode mode = ProgressMode::none;
  bool bar = false;
  LogFile file;
  Stopwatch shown;
};

Reporter::Reporter(ProgressMode mode, const std::string& log_file) {
  if (log_file.empty()) return;
  sinks_ = std::make_unique<Sinks>(log_file);
  sinks_->mode = mode;
  sinks_->bar = mode == ProgressMode::bar || (mode == ProgressMode::automatic && has_console());
}

Reporter::~Reporter() = default;

void Reporter::info(const std::string& line) {
  if (sinks_) sinks_->log(LogLevel::info, line, sinks_->mode != ProgressMode::none);
}

void Reporter::warn(const std::string& line) {
  if (sinks_) sinks_->log(LogLevel::warning, line, true);
}

void Reporter::often(Sparingly& kind, double share_done, const std::string& line, bool beside_bar) {
  if (!sinks_ || (!kind.due(share_done) && sinks_->mode != ProgressMode::plain)) return;
  sinks_->log(LogLevel::info, line, sinks_->mode != ProgressMode::none && (beside_bar || !sinks_->bar));
}

bool Reporter::tick_due() const {
  constexpr double between = 0.2;
  return sinks_ && sinks_->bar && sinks_->shown.seconds() >= between;
}

void Reporter::show_now(double done, const std::string& line) {
  if (!sinks_ || !sinks_->bar) return;
  sinks_->shown = {};
  show_console_line(draw_bar(done) + line);
}

LogLine Reporter::of_work(bool repeated) {
  if (!sinks_ || sinks_->mode == ProgressMode::none) return {};
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
