// A language model that learns from what it has scored (train/evaluation/adaptive.hpp), for `--cache` and `--adapt` of
// `capstan eval` and `capstan score`. tests/train/test_adaptive.cpp, tests/run/test_adapted.cpp and
// tests/cli/runs/test_eval.cpp hold it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "run/predictions/text_scores.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/run_model.hpp"
#include "train/evaluation/adaptive.hpp"

namespace capstan {

constexpr int64_t max_cached_tokens = 1 << 20;

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
/// a copy. Throws Error unless the model predicts the next token, for a cache without validation data, and for one of a
/// model that reads sources in both directions; ConfigError for options out of range.
AdaptedFigures evaluate_adapted(const SavedRun& run, const DataSource& data, Split split, const AdaptOptions& options);

/// Scores texts in the order in which they come with a model that goes on learning from text to text: each score
/// depends on the texts before it. A text is read in the windows of evaluate_adapted(), so that a first one has the
/// loss of a split that is this text; of a pair, the target after its source is one window. Weights are changed in a
/// copy.
class AdaptedScorer {
 public:
  /// Reads the run's training data to adapt weights, and its validation data to choose the rule of a cache. Throws what
  /// evaluate_adapted() throws.
  AdaptedScorer(const SavedRun& run, const AdaptOptions& options);

  /// Throws Error for a text that cannot be used, from which nothing is learned, and where learning has made the loss
  /// infinite, after which the scorer is of no use.
  TextScore score(const InputText& text);

 private:
  SavedRun run_;  // its model is that which learns
  AdaptOptions options_;
  std::unique_ptr<AdaptiveScorer> scorer_;
};

}  // namespace capstan
