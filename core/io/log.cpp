// Loggers share sinks: the files of runs that are being trained, and ShownSink, which is the program's sink or, without
// one, the terminal. Messages go to all of these; the lines of a run go to its own file and, if `shown`, to ShownSink.
// Sinks have levels, loggers have none. tests/cli/inputs/test_log.cpp.
#include "core/io/log.hpp"

#include <fcntl.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>

#include "core/base/error.hpp"
#include "core/io/console.hpp"
#include "core/io/file.hpp"
#include "core/io/mapped_file.hpp"
#include "core/strings/printable.hpp"

namespace capstan {
namespace {

constexpr const char* program_name = "capstan";
constexpr const char* run_name = "train";  // of loggers whose lines have the time on the terminal, too

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  throw Error("log: unknown level");
}

LogLevel level_of(spdlog::level::level_enum level) {
  if (level >= spdlog::level::err) return LogLevel::error;
  if (level == spdlog::level::warn) return LogLevel::warning;
  return level == spdlog::level::info ? LogLevel::info : LogLevel::debug;
}

/// %v of a pattern: what a message quotes from files (labels, names, keys) must not reach a terminal as a command to
/// it, nor pass for a line of its own. Only errors have several lines, those after the first indented.
class PrintableText final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    const std::string_view payload{message.payload.data(), message.payload.size()};
    std::string text = message.level >= spdlog::level::err ? printable(payload) : printable_line(payload);
    for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) text.insert(at + 1, "  ");
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override { return std::make_unique<PrintableText>(); }
};

std::unique_ptr<spdlog::formatter> pattern(const char* text) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableText>('v').set_pattern(text);
  return formatter;
}

/// "warning: message"; of a run "[2024-05-01 12:00:00] line" and "[2024-05-01 12:00:00] warning: line".
class LineFormatter final : public spdlog::formatter {
 public:
  /// always_timed: as in a file.
  explicit LineFormatter(bool always_timed) : always_timed_(always_timed) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    const bool timed = always_timed_ || message.logger_name == run_name;
    const bool plain = message.level == spdlog::level::info;
    (!timed ? message_ : plain ? timed_line_ : timed_message_)->format(message, line);
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<LineFormatter>(always_timed_); }

 private:
  bool always_timed_;
  std::unique_ptr<spdlog::formatter> message_ = pattern("%^%l%$: %v"), timed_line_ = pattern("[%Y-%m-%d %H:%M:%S] %v"),
                                     timed_message_ = pattern("[%Y-%m-%d %H:%M:%S] %^%l%$: %v");
};

/// Standard error, whose last line may show how far the work is.
class TerminalSink final : public spdlog::sinks::ansicolor_stderr_sink_mt {
 public:
  TerminalSink() { set_formatter(std::make_unique<LineFormatter>(false)); }
  void log(const spdlog::details::log_msg& message) override {
    print_above_console_line([&] { ansicolor_stderr_sink::log(message); });
  }
};

/// The sink of the program, or the terminal where there is none.
class ShownSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  void set(LogSink program) {
    const std::lock_guard lock(mutex_);
    program_ = std::move(program);
  }
  TerminalSink& terminal() { return terminal_; }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    LogSink program;
    {
      const std::lock_guard lock(mutex_);  // not while it runs: it may wait for a thread that logs
      program = program_;
    }
    if (program)
      program(level_of(message.level), {message.payload.data(), message.payload.size()});
    else
      terminal_.log(message);
  }
  void flush_() override {}

 private:
  std::mutex mutex_;
  LogSink program_;
  TerminalSink terminal_;
};

std::shared_ptr<spdlog::logger> make_logger(const char* name, std::vector<spdlog::sink_ptr> sinks) {
  auto logger = std::make_shared<spdlog::logger>(name, sinks.begin(), sinks.end());
  logger->set_level(spdlog::level::trace);  // the sinks decide
  logger->flush_on(spdlog::level::trace);
  logger->set_error_handler([](const std::string&) {});
  return logger;
}

/// The sinks and the logger of all messages.
struct Log {
  std::shared_ptr<ShownSink> shown = std::make_shared<ShownSink>();
  std::shared_ptr<spdlog::sinks::dist_sink_mt> run_files = std::make_shared<spdlog::sinks::dist_sink_mt>();
  // Files come first in the list: a line that somebody has seen on the terminal is in the file.
  std::shared_ptr<spdlog::logger> messages = make_logger(program_name, {run_files, shown});
  std::mutex mutex;
  LogLevel level = LogLevel::info;

  Log() { set_level(LogLevel::info); }
  void set_level(LogLevel to) {
    level = to;
    shown->set_level(level_of(to));
    run_files->set_level(level_of(std::min(to, LogLevel::info)));
  }
};

Log& the_log() {
  static Log& log = *new Log;  // never destroyed: what ends after main() may have something to say
  return log;
}

}  // namespace

void log_message(LogLevel level, std::string_view message) {
  the_log().messages->log(level_of(level), spdlog::string_view_t(message.data(), message.size()));
}

void set_log_level(LogLevel level) {
  const std::lock_guard lock(the_log().mutex);
  the_log().set_level(level);
}

void set_log_sink(LogSink sink) {
  disable_console(static_cast<bool>(sink));
  the_log().shown->set(std::move(sink));
}

void log_to_stderr(LogLevel level, std::string_view message) {
  the_log().shown->terminal().log(
      {program_name, level_of(level), spdlog::string_view_t(message.data(), message.size())});
}

struct RunLog::Loggers {
  spdlog::sink_ptr file;
  std::shared_ptr<spdlog::logger> shown, hidden;
};

RunLog::RunLog(const std::string& file) : loggers_(std::make_unique<Loggers>()) {
  ::close(open_own_file(file, O_WRONLY | O_CREAT | O_APPEND));  // its checks and its words
  spdlog::file_event_handlers events;
  events.after_open = [](const std::string&, std::FILE* stream) { set_fault_log(::fileno(stream)); };
  events.before_close = [](const std::string&, std::FILE*) { set_fault_log(-1); };
  try {
    loggers_->file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file, false, events);
  } catch (const spdlog::spdlog_ex& error) {
    throw Error(error.what());
  }
  Log& log = the_log();
  loggers_->file->set_formatter(std::make_unique<LineFormatter>(true));
  loggers_->file->set_level(log.run_files->level());
  loggers_->shown = make_logger(run_name, {loggers_->file, log.shown});
  loggers_->hidden = make_logger(run_name, {loggers_->file});
  log.run_files->add_sink(loggers_->file);
}

RunLog::~RunLog() { the_log().run_files->remove_sink(loggers_->file); }

void RunLog::log(LogLevel level, std::string_view line, bool shown) {
  (shown ? loggers_->shown : loggers_->hidden)->log(level_of(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace capstan
