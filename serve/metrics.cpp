// Writes the counts of a server in the text format of Prometheus. Dashboards read the names, which must not change:
// tests/serve/test_endpoints.cpp.
#include "serve/metrics.hpp"

#include <fmt/core.h>

namespace capstan {
namespace {

std::string labels_of(const std::string& model) {
  std::string escaped;
  for (const char c : model) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return fmt::format("model_name=\"{}\"", escaped);
}

}  // namespace

void Histogram::add(double seconds) {
  size_t at = 0;
  while (at < bounds_.size() && seconds > bounds_[at]) ++at;
  ++counts_[at];
  sum_ += seconds;
}

std::string Histogram::text(const std::string& name, const std::string& labels) const {
  std::string lines;
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

int64_t ServeMetrics::value(Count count) const {
  const std::lock_guard lock(mutex_);
  return counts_[static_cast<size_t>(count)];
}

Histogram ServeMetrics::value(Time time) const {
  const std::lock_guard lock(mutex_);
  return times_[static_cast<size_t>(time)];
}

std::string prometheus_text(const std::map<std::string, std::shared_ptr<ServeMetrics>>& models) {
  using Count = ServeMetrics::Count;
  using Time = ServeMetrics::Time;
  struct Family {
    Count count;
    const char *name, *type;
  };
  static constexpr Family counts[] = {{Count::running, "num_requests_running", "gauge"},
                                      {Count::waiting, "num_requests_waiting", "gauge"},
                                      {Count::prompt_tokens, "prompt_tokens_total", "counter"},
                                      {Count::generation_tokens, "generation_tokens_total", "counter"},
                                      {Count::cache_queries, "prefix_cache_queries_total", "counter"},
                                      {Count::cache_hits, "prefix_cache_hits_total", "counter"},
                                      {Count::successes, "request_success_total", "counter"}};
  static constexpr std::pair<Time, const char*> times[] = {{Time::first_token, "time_to_first_token_seconds"},
                                                           {Time::between_tokens, "inter_token_latency_seconds"},
                                                           {Time::whole, "e2e_request_latency_seconds"},
                                                           {Time::queue, "request_queue_time_seconds"}};
  std::string lines;
  for (const Family& family : counts) {
    lines += fmt::format("# TYPE capstan_{} {}\n", family.name, family.type);
    for (const auto& [model, metrics] : models)
      lines += fmt::format("capstan_{}{{{}}} {}\n", family.name, labels_of(model), metrics->value(family.count));
  }
  for (const auto& [time, name] : times) {
    lines += fmt::format("# TYPE capstan_{} histogram\n", name);
    for (const auto& [model, metrics] : models)
      lines += metrics->value(time).text(fmt::format("capstan_{}", name), labels_of(model));
  }
  return lines;
}

}  // namespace capstan
