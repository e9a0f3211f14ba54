// Messages of the program on stderr. The only user of spdlog in apps/.
#pragma once

#include <new>
#include <string>
#include <string_view>

namespace capstan {

/// From here on messages have the form "level: message", coloured on a terminal, with everything printable
/// (core/strings/printable.hpp).
void set_up_log();

/// For all ranks but one: from here on only errors are shown, with `name` in front.
void log_errors_only(const std::string& name);

void log_info(std::string_view message);
void log_warning(std::string_view message);
void log_error(std::string_view message);
/// What was wanted, and the remedies, without taking memory for it.
void log_out_of_memory(const std::bad_alloc& error) noexcept;

}  // namespace capstan
