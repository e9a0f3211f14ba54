#include "train/records/log.hpp"

#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <string>

#include "core/io/console.hpp"
#include "core/strings/printable.hpp"

namespace capstan {
namespace {

std::mutex sink_mutex;

LogSink& sink_of_program() {
  static LogSink sink;
  return sink;
}

bool shows_colours() {
  const char* const terminal = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

}  // namespace

void set_log_sink(LogSink sink) {
  const std::lock_guard lock(sink_mutex);
  disable_console(static_cast<bool>(sink));
  sink_of_program() = std::move(sink);
}

bool has_log_sink() {
  const std::lock_guard lock(sink_mutex);
  return static_cast<bool>(sink_of_program());
}

void log_to_stderr(LogLevel level, std::string_view message) {
  struct {
    const char *name, *colour;
  } const levels[] = {{"info", "\033[32m"}, {"warning", "\033[33m\033[1m"}, {"error", "\033[31m\033[1m"}};
  const auto& [name, colour] = levels[static_cast<size_t>(level)];
  const bool coloured = shows_colours();
  const std::string line =
      std::string(coloured ? colour : "") + name + (coloured ? "\033[m" : "") + ": " + printable(message) + '\n';
  print_to_console(line);
}

void log_message(LogLevel level, std::string_view message) {
  LogSink sink;
  {
    const std::lock_guard lock(sink_mutex);  // not while it runs: it may wait for a thread that logs
    sink = sink_of_program();
  }
  if (sink)
    sink(level, message);
  else
    log_to_stderr(level, message);
}

}  // namespace capstan
