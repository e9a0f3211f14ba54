// The form of log lines. What a message quotes from files (labels, names, keys) must not reach a terminal as a command
// to it, so every logger of the program is given this formatter. For sources that use spdlog.
#pragma once

#include <spdlog/pattern_formatter.h>

#include <memory>
#include <string>

#include "core/strings/printable.hpp"

namespace capstan {

/// %v of a pattern: the message, printable.
class PrintableMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    const std::string text = printable({message.payload.data(), message.payload.size()});
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override { return std::make_unique<PrintableMessage>(); }
};

inline std::unique_ptr<spdlog::formatter> printable_formatter(const std::string& pattern) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('v').set_pattern(pattern);
  return formatter;
}

}  // namespace capstan
