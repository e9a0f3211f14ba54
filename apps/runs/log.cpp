#include "apps/runs/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace capstan {

void set_up_log() {
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("capstan", std::make_shared<spdlog::sinks::stderr_color_sink_st>()));
  spdlog::set_pattern("%^%l%$: %v");
}

void log_info(std::string_view message) { spdlog::info("{}", message); }
void log_warning(std::string_view message) { spdlog::warn("{}", message); }
void log_error(std::string_view message) { spdlog::error("{}", message); }

}  // namespace capstan
