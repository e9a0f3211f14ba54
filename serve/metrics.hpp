// What a server counts, in the text format of Prometheus. The names are those of vLLM with `capstan_` in front, so that
// dashboards made for vLLM can be used. Engines count; GET /metrics (server.cpp) shows it.
// tests/serve/test_endpoints.cpp holds the names.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace capstan {

/// Counts of values between bounds, in seconds. Not thread-safe.
class Histogram {
 public:
  void add(double seconds);
  std::string text(const std::string& name, const std::string& labels) const;

 private:
  /// Seconds, from a token of a small model to a request of many tokens.
  static constexpr std::array<double, 16> bounds_{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
                                                  0.5,   1,     2,     5,    10,   20,   60,  300};
  std::array<int64_t, bounds_.size() + 1> counts_{};
  double sum_ = 0;
};

/// The counts of one model. Thread-safe.
class ServeMetrics {
 public:
  enum class Count { running, waiting, prompt_tokens, generation_tokens, cache_queries, cache_hits, successes };
  enum class Time { first_token, between_tokens, whole, queue };

  void add(Count count, int64_t more = 1);
  void set(Count count, int64_t value);
  void add(Time time, double seconds);
  int64_t value(Count count) const;
  Histogram value(Time time) const;

 private:
  mutable std::mutex mutex_;
  std::array<int64_t, 7> counts_{};
  std::array<Histogram, 4> times_;
};

/// The metrics of all models by name, in Prometheus' text format, in which the lines of a metric stand together.
std::string prometheus_text(const std::map<std::string, std::shared_ptr<ServeMetrics>>& models);

}  // namespace capstan
