// Writes the counts of a server in the text format of Prometheus. Dashboards read the names, which must not change:
// tests/serve/test_endpoints.cpp.
#include "serve/metrics.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace capstan {
namespace {

/// A metric's name after `capstan_`, its type, and its value in ServeMetrics.
struct Family {
  const char *name, *type;
  std::atomic<int64_t> ServeMetrics::*value;
};

constexpr Family families[] = {{"num_requests_running", "gauge", &ServeMetrics::running},
                               {"num_requests_waiting", "gauge", &ServeMetrics::waiting},
                               {"prompt_tokens_total", "counter", &ServeMetrics::prompt_tokens},
                               {"generation_tokens_total", "counter", &ServeMetrics::generation_tokens},
                               {"request_success_total", "counter", &ServeMetrics::successes}};

}  // namespace

std::string prometheus_text(const std::map<std::string, const ServeMetrics*>& models) {
  std::string lines;
  for (const Family& family : families) {
    lines += fmt::format("# TYPE capstan_{} {}\n", family.name, family.type);
    for (const auto& [model, metrics] : models)
      lines += fmt::format("capstan_{}{{model_name={}}} {}\n", family.name, nlohmann::json(model).dump(),
                           ((*metrics).*family.value).load());
  }
  return lines;
}

}  // namespace capstan
