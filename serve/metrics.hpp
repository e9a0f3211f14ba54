// What a server counts, in the text format of Prometheus, under the names of vLLM with `capstan_` in front. Engines
// count; GET /metrics (server.cpp) shows it. tests/serve/test_endpoints.cpp holds the names.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

namespace capstan {

/// The counts of one model. Any thread may read and write them.
struct ServeMetrics {
  std::atomic<int64_t> running = 0, waiting = 0;  // texts
  std::atomic<int64_t> prompt_tokens = 0, generation_tokens = 0;
  std::atomic<int64_t> successes = 0;  // texts that were written to their end
};

/// The metrics of all models by name. The lines of a metric are together, as Prometheus' text format demands.
std::string prometheus_text(const std::map<std::string, const ServeMetrics*>& models);

}  // namespace capstan
