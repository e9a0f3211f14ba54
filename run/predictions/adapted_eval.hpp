// What a language model makes of a split when it learns from what it has scored (train/evaluation/adaptive.hpp), for
// `capstan eval --cache` and `--adapt`. tests/train/test_adaptive.cpp and tests/cli/test_eval.cpp hold it.
#pragma once

#include <cstdint>
#include <optional>

#include "run/setup/run_data.hpp"
#include "run/setup/run_model.hpp"
#include "train/evaluation/adaptive.hpp"

namespace capstan {

struct AdaptOptions {
  int64_t cache = 0;    // tokens that the cache remembers; 0: there is none
  double rate = 0;      // the learning rate of dynamic evaluation; 0: the weights stay
  double decay = 0.02;  // the share of the way back to the trained weights that each window goes
  bool any() const { return cache > 0 || rate > 0; }
};

/// The figures of a split that was scored while the model learned from what it had scored.
struct AdaptedFigures {
  int64_t targets = 0;
  double loss_sum = 0;            // nats
  std::optional<CacheRule> rule;  // the rule that was chosen for the cache; none without a cache
  double seconds = 0;             // of the evaluation, without that of the rules
  double loss() const { return loss_sum / static_cast<double>(targets); }
};

/// The rule of a cache is the best of a grid on the validation data, which are read first in the same way; where the
/// split is the validation data, it is the best one in hindsight, and a line of the log says so. Weights are changed in
/// a copy. Throws Error unless the model predicts the next token, and for a cache without validation data.
AdaptedFigures evaluate_adapted(const SavedRun& run, const DataSource& data, Split split, const AdaptOptions& options);

}  // namespace capstan
