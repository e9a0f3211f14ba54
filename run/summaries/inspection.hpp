// A model in words: sizes, costs and where its weights are from, for `capstan inspect`.
// tests/cli/runs/test_commands.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "run/setup/saved_run.hpp"

namespace capstan {

struct InspectOptions {
  int64_t length = 0;  // tokens of a text; 0: as many as the model has positions, or 512 without a limit
  int64_t vocabulary = 256, classes = 10;  // of a model that has no data yet
};

/// Of the model that a configuration describes, without weights.
std::string inspection_of(const RunConfig& config, const InspectOptions& options);

/// Of a trained model: also its file of weights, and what they were started from.
std::string inspection_of(const SavedRun& run, int64_t length);

}  // namespace capstan
