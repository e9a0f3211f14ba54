#include "serve/metrics.hpp"

#include <fmt/core.h>

namespace capstan {

void Histogram::add(double seconds) {
  size_t at = 0;
  while (at < bounds_.size() && seconds > bounds_[at]) ++at;
  ++counts_[at];
  sum_ += seconds;
}

std::string Histogram::text(const std::string& name, const std::string& labels) const {
  std::string lines = fmt::format("# TYPE {} histogram\n", name);
  int64_t up_to_here = 0;  // Prometheus' buckets are cumulative
  for (size_t i = 0; i < counts_.size(); ++i) {
    up_to_here += counts_[i];
    lines += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels,
                         i < bounds_.size() ? fmt::format("{}", bounds_[i]) : "+Inf", up_to_here);
  }
  return lines + fmt::format("{0}_sum{{{1}}} {2}\n{0}_count{{{1}}} {3}\n", name, labels, sum_, up_to_here);
}

void ServeMetrics::add(Count count, int64_t more) {
  const std::lock_guard lock(mutex_);
  counts_[static_cast<size_t>(count)] += more;
}

void ServeMetrics::set(Count count, int64_t value) {
  const std::lock_guard lock(mutex_);
  counts_[static_cast<size_t>(count)] = value;
}

void ServeMetrics::add(Time time, double seconds) {
  const std::lock_guard lock(mutex_);
  times_[static_cast<size_t>(time)].add(seconds);
}

std::string ServeMetrics::text(const std::string& model) const {
  static constexpr std::array<std::pair<const char*, const char*>, 7> counts{{{"num_requests_running", "gauge"},
                                                                              {"num_requests_waiting", "gauge"},
                                                                              {"prompt_tokens_total", "counter"},
                                                                              {"generation_tokens_total", "counter"},
                                                                              {"prefix_cache_queries_total", "counter"},
                                                                              {"prefix_cache_hits_total", "counter"},
                                                                              {"request_success_total", "counter"}}};
  static constexpr std::array<const char*, 4> times{"time_to_first_token_seconds", "inter_token_latency_seconds",
                                                    "e2e_request_latency_seconds", "request_queue_time_seconds"};
  std::string escaped;  // as label values are written
  for (const char c : model) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  const std::string labels = fmt::format("model_name=\"{}\"", escaped);
  const std::lock_guard lock(mutex_);
  std::string lines;
  for (size_t i = 0; i < counts.size(); ++i)
    lines += fmt::format("# TYPE capstan_{0} {1}\ncapstan_{0}{{{2}}} {3}\n", counts[i].first, counts[i].second, labels,
                         counts_[i]);
  for (size_t i = 0; i < times.size(); ++i) lines += times_[i].text(fmt::format("capstan_{}", times[i]), labels);
  return lines;
}

}  // namespace capstan
