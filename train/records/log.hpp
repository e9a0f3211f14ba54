// Messages of the library. Where they go is for the program to say.
#pragma once

#include <functional>
#include <string_view>

namespace capstan {

enum class LogLevel { info, warning, error };
using LogSink = std::function<void(LogLevel level, std::string_view message)>;

/// From here on, all messages and the lines of a training go to `sink`, which several threads may call at a time. An
/// empty one, as at the start of a program: log_to_stderr(), and a bar on a terminal that shows the progress of a
/// training.
void set_log_sink(LogSink sink);
bool has_log_sink();

/// "warning: message", coloured on a terminal, with everything printable (core/strings/printable.hpp).
void log_to_stderr(LogLevel level, std::string_view message);

void log_message(LogLevel level, std::string_view message);
inline void log_info(std::string_view message) { log_message(LogLevel::info, message); }
inline void log_warning(std::string_view message) { log_message(LogLevel::warning, message); }
inline void log_error(std::string_view message) { log_message(LogLevel::error, message); }

}  // namespace capstan
