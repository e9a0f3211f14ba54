#include "train/records/reporter.hpp"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "core/strings/printable.hpp"
#include "train/records/log_file_sink.hpp"
#include "train/records/printable_formatter.hpp"

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

/// stderr with a bar as its last line; log lines are printed above it.
class ConsoleSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  void show(const std::string& bar) {
    bar_ = bar;
    std::fprintf(stderr, "\r\033[K%s", cut_to_terminal(bar_).c_str());
    std::fflush(stderr);
  }
  void clear() {
    if (!bar_.empty()) std::fputs("\r\033[K", stderr);
    bar_.clear();
    std::fflush(stderr);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (!bar_.empty()) std::fputs("\r\033[K", stderr);
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fputs(cut_to_terminal(bar_).c_str(), stderr);
  }
  void flush_() override { std::fflush(stderr); }

 private:
  std::string bar_;
};

std::string draw_bar(double done) {
  constexpr int width = 20;
  const int full = static_cast<int>(std::clamp(done, 0.0, 1.0) * width);
  return fmt::format("[{}{}] {:3.0f}% ", std::string(static_cast<size_t>(full), '='),
                     std::string(static_cast<size_t>(width - full), ' '), 100 * done);
}

}  // namespace

struct Reporter::Sinks {
  bool bar = false, plain = false;
  std::shared_ptr<ConsoleSink> console = std::make_shared<ConsoleSink>();
  std::unique_ptr<spdlog::logger> logger, file;
  Clock::time_point shown = Clock::now();
};

Reporter::Reporter(ProgressMode mode, const std::string& log_file) : sinks_(std::make_unique<Sinks>()) {
  if (log_file.empty()) {
    sinks_->logger = std::make_unique<spdlog::logger>("train");
    sinks_->file = std::make_unique<spdlog::logger>("train");
    return;
  }
  const bool terminal = isatty(STDERR_FILENO) != 0;
  sinks_->bar = mode == ProgressMode::bar || (mode == ProgressMode::automatic && terminal);
  sinks_->plain = !sinks_->bar && mode != ProgressMode::none;
  if (mode == ProgressMode::none) sinks_->console->set_level(spdlog::level::warn);
  const auto file = std::make_shared<LogFileSink>(log_file);
  sinks_->logger = std::make_unique<spdlog::logger>("train", spdlog::sinks_init_list{sinks_->console, file});
  sinks_->file = std::make_unique<spdlog::logger>("train", file);
  for (spdlog::logger* logger : {sinks_->logger.get(), sinks_->file.get()}) {
    logger->set_formatter(printable_formatter("[%Y-%m-%d %H:%M:%S] %v"));
    logger->flush_on(spdlog::level::info);
    logger->set_error_handler([](const std::string&) {});  // a full disk: the next checkpoint reports it properly
  }
}

Reporter::~Reporter() { sinks_->console->clear(); }

void Reporter::info(const std::string& line) { sinks_->logger->info(line); }
void Reporter::warn(const std::string& line) { sinks_->logger->warn("warning: " + line); }

void Reporter::status(const std::string& line) {
  (sinks_->plain ? *sinks_->logger : *sinks_->file).info(line);
  if (sinks_->plain) sinks_->shown = Clock::now();
}

bool Reporter::tick_due() const {
  const auto silence = Clock::now() - sinks_->shown;
  return sinks_->bar ? silence >= std::chrono::milliseconds(200) : sinks_->plain && silence >= std::chrono::seconds(30);
}

void Reporter::show_tick(double done, const std::string& line) {
  sinks_->shown = Clock::now();
  if (sinks_->bar) {
    sinks_->console->show(draw_bar(done) + line);
  } else {
    sinks_->logger->info(line);
  }
}

void Reporter::show_now(double done, const std::string& line) {
  if (sinks_->bar) show_tick(done, line);
}

std::string short_count(double count) {
  if (count >= 1e9) return fmt::format("{:.2f}G", count / 1e9);
  if (count >= 1e6) return fmt::format("{:.2f}M", count / 1e6);
  if (count >= 1e3) return fmt::format("{:.1f}k", count / 1e3);
  return fmt::format("{:.0f}", count);
}

std::string short_time(double seconds) {
  const int64_t s = std::llround(std::clamp(seconds, 0.0, 1e9));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
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
