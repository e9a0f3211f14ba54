// What several ranks would cost, for `capstan inspect --ranks`: nothing is trained or sent.
// tests/cli/training/test_ranks.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "run/setup/run_memory.hpp"
#include "run/setup/run_model.hpp"

namespace capstan {

struct RankForecast {
  int64_t ranks = 0;     // processes
  double bandwidth = 1;  // of a machine's connection, in Gbit/s
  double latency = 50;   // of a short message, in microseconds
  double speed = 0;  // tokens per second that one process trains by itself; 0: estimated for one thread of this machine
};

/// Messages and time of a step (train/rank_steps/rank_cost.hpp) of texts of `length` tokens, and memory.
std::string rank_forecast(const RankForecast& asked, const RunConfig& config, const RunModel& model, DataExtent extent,
                          int64_t length);

}  // namespace capstan
