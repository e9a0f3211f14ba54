// train.log as a sink of spdlog.
#pragma once

#include <fcntl.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <string>

#include "core/io/file.hpp"
#include "core/io/mapping_faults.hpp"

namespace capstan {

/// Appends to a regular file and nothing else. A line that cannot be written (a full disk) is left out: the next
/// checkpoint reports it properly.
class LogFileSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  /// Throws Error.
  explicit LogFileSink(const std::string& path) : descriptor_(open_own_file(path, O_WRONLY | O_CREAT | O_APPEND)) {
    set_fault_log(descriptor_);
  }
  ~LogFileSink() override {
    set_fault_log(-1);
    ::close(descriptor_);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const char* next = line.data();
    for (size_t left = line.size(); left > 0;) {
      const ssize_t written = ::write(descriptor_, next, left);
      if (written <= 0) return;
      next += written;
      left -= static_cast<size_t>(written);
    }
  }
  void flush_() override {}

 private:
  int descriptor_;
};

}  // namespace capstan
