#include "run/setup/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstring>

#include "core/base/out_of_memory.hpp"

#include "train/records/printable_formatter.hpp"

namespace capstan {

void set_up_log() {
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("capstan", std::make_shared<spdlog::sinks::stderr_color_sink_st>()));
  spdlog::set_formatter(printable_formatter("%^%l%$: %v"));
}

void log_errors_only(const std::string& name) {
  spdlog::set_level(spdlog::level::err);
  spdlog::set_formatter(printable_formatter("%^%l%$: " + name + ": %v"));
}

void log_info(std::string_view message) { spdlog::info("{}", message); }
void log_warning(std::string_view message) { spdlog::warn("{}", message); }
void log_error(std::string_view message) { spdlog::error("{}", message); }

void log_out_of_memory(const std::bad_alloc& error) noexcept {
  const char* const what = dynamic_cast<const OutOfMemory*>(&error) != nullptr ? error.what() : "out of memory";
  const bool has_remedy = std::strchr(what, ':') != nullptr;
  for (const char* const part :
       {"error: ", what,
        has_remedy ? "\n" : ": lower train.batch_size, or set train.micro_batch_tokens or model.recompute\n"})
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) return;
}

}  // namespace capstan
