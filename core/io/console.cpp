// The line at the bottom of the terminal. There is one terminal per process, so the line is global, under one mutex. It
// is cut to the width of the terminal by leaving out its last fields. tests/cli/inputs/test_terminal.cpp.
#include "core/io/console.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "core/strings/printable.hpp"

namespace capstan {
namespace {

std::atomic<bool> is_disabled{false}, has_own_line{false};
std::mutex mutex;
std::function<void(const std::string&)> own_line;
std::string shown;  // the line that the terminal shows at present

/// Cuts a line to the terminal's present width. The last column stays free: some terminals go to the next line as soon
/// as it is written.
std::string cut_to_terminal(std::string line) {
  constexpr std::string_view between = " : ";
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return line;
  const size_t columns = size.ws_col - 1u;
  while (display_columns(line) > columns) {
    const size_t last = line.rfind(between);
    if (last == std::string::npos) break;
    line.erase(last);
  }
  return std::string(first_columns(line, columns));
}

void write(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

void set_console_line(std::function<void(const std::string& line)> show) {
  const std::lock_guard lock(mutex);
  has_own_line = static_cast<bool>(show);
  own_line = std::move(show);
}

bool has_console() {
  if (has_own_line) return true;
  const char* const terminal = std::getenv("TERM");
  return !is_disabled && isatty(STDERR_FILENO) != 0 && (terminal == nullptr || std::string_view(terminal) != "dumb");
}

void disable_console(bool disabled) { is_disabled = disabled; }

void show_console_line(const std::string& line) {
  std::unique_lock lock(mutex);
  if (const auto show = own_line) {
    lock.unlock();  // it may wait for a thread that shows a line
    return show(line);
  }
  if (line.empty() && shown.empty()) return;
  shown = cut_to_terminal(line);
  write("\r\033[K" + shown);
  std::fflush(stderr);
}

void print_above_console_line(const std::function<void()>& print) {
  const std::lock_guard lock(mutex);
  if (!shown.empty()) write("\r\033[K");
  print();
  if (shown.empty()) return;
  write(shown);
  std::fflush(stderr);
}

std::string draw_bar(double share) {
  constexpr size_t width = 10;
  share = std::clamp(share, 0.0, 1.0);  // an estimate of the whole may be too low
  const auto full = static_cast<size_t>(share * static_cast<double>(width));
  return fmt::format("[{}{}] {:3.0f}% ", std::string(full, '='), std::string(width - full, ' '), 100 * share);
}

}  // namespace capstan
