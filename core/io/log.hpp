// The messages of the library and of the program, by spdlog.
//
// A message goes to the terminal (standard error) or to the sink of the program that uses the library, and to the
// train.log of every run that is being trained (tests/cli/inputs/test_log.cpp). Only log.cpp includes spdlog, which
// would add 3 s to the compilation of every source.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/schema.hpp"

namespace capstan {

/// From the least to the most important. `debug` is for those who look for the cause of something.
enum class LogLevel { debug, info, warning, error };
inline std::vector<EnumName<LogLevel>> enum_names(LogLevel) {
  return {
      {LogLevel::debug, "debug"}, {LogLevel::info, "info"}, {LogLevel::warning, "warning"}, {LogLevel::error, "error"}};
}

void log_message(LogLevel level, std::string_view message);
inline void log_debug(std::string_view message) { log_message(LogLevel::debug, message); }
inline void log_info(std::string_view message) { log_message(LogLevel::info, message); }
inline void log_warning(std::string_view message) { log_message(LogLevel::warning, message); }
inline void log_error(std::string_view message) { log_message(LogLevel::error, message); }

/// Sets the least important level that is shown or handed to the program's sink; `info` at the start. A train.log has
/// all messages from `info` on, and with level `debug` also those of `debug`.
void set_log_level(LogLevel level);

using LogSink = std::function<void(LogLevel level, std::string_view message)>;
/// From here on, all messages and the lines of a training go to `sink` instead of the terminal. Several threads may
/// call it at a time; what it throws is dropped. An empty one, as at the start of a program: the terminal.
void set_log_sink(LogSink sink);
/// "warning: message" on the terminal, coloured if it has colours, with everything printable
/// (core/strings/printable.hpp). For sinks that pass messages on.
void log_to_stderr(LogLevel level, std::string_view message);

/// The train.log of a run, to which lines are appended with the time. Each is handed to the kernel before the call
/// returns, so that a killed process has lost none. A line that cannot be written (a full disk) is left out: the next
/// checkpoint reports it properly.
class RunLog {
 public:
  /// Throws Error unless `file` is a regular file that can be written, or none yet.
  explicit RunLog(const std::string& file);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  /// Appends a line. `shown`: the line also goes to the terminal or the program's sink.
  void log(LogLevel level, std::string_view line, bool shown);

 private:
  struct Loggers;
  std::unique_ptr<Loggers> loggers_;
};

}  // namespace capstan
