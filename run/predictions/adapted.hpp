// A language model that learns from what it has scored: every token is scored before anything is learned from it. A
// continuous cache remembers which token followed a state (Grave et al. 2017, arXiv 1612.04426); dynamic evaluation
// goes on training the weights (Krause et al. 2018, arXiv 1709.07432). For `--cache` and `--adapt` of `capstan
// eval`; tests/run/test_adaptive.cpp and tests/cli/runs/test_eval.cpp hold it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/array/array.hpp"
#include "core/io/progress.hpp"
#include "data/batches/batcher.hpp"
#include "models/model.hpp"
#include "nn/params/param_store.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {

/// How a cache decides: p(w) = (1 - weight) p_model(w) + weight p_cache(w). Of the remembered states h_i, those that
/// token w followed vote for it with exp(sharpness cos(h, h_i)). The paper has the product of the states in place of
/// its cosine, which depends on their size.
struct CacheRule {
  double sharpness = 20;
  double weight = 0.1;
};

constexpr int64_t max_cached_tokens = 1 << 20;

struct AdaptOptions {
  int64_t cache = 0;    // tokens that the cache remembers; 0: there is none
  double rate = 0;      // the learning rate of dynamic evaluation; 0: the weights stay
  double decay = 0.02;  // the share of the way back to the trained weights that each window goes
  bool any() const { return cache > 0 || rate > 0; }
};

/// Remembers which token followed each of the last `size` states of a text.
class ContinuousCache {
 public:
  /// For states of `width` elements.
  ContinuousCache(int64_t size, int64_t width);

  /// states: (n, D), in the order of the text; labels: (n), the tokens that followed them. Returns for each rule the n
  /// probabilities of these tokens by what followed earlier states, those of this call included; 0 while there are
  /// none. Then remembers the states.
  std::vector<std::vector<double>> score(const Array& states, const Ids& labels, const std::vector<CacheRule>& rules);

 private:
  void remember(const Array& states, const Ids& labels);

  Array states_;                 // (size, D), each of norm 1; the oldest at next_
  std::vector<int32_t> labels_;  // -1: no state yet
  int64_t next_ = 0, filled_ = 0;
};

/// Trains the weights on texts that were scored, w -= rate g / (RMS(g) + e) + decay RMS(g) / mean RMS(g) (w - start),
/// where RMS(g) is each weight's over training texts and e a hundredth of the mean: weights that training moved most
/// are the ones that move, and that return. The quotient is at most 10, of either sign. Rows of tables that are updated
/// by rows share one RMS and do not return.
class DynamicEvaluation {
 public:
  /// Computes gradients of up to 200 training texts. Task and parameters must outlive it.
  DynamicEvaluation(const Task& task, ParamStore& params, const BatchSource& training, const AdaptOptions& options,
                    const LogLine& log);

  /// The gradient of the text's mean loss moves the weights. Returns its summed loss before that, in nats.
  double learn(const Batch& text);

 private:
  /// Adds the gradient of the text's mean loss to those of the store.
  TaskLoss add_gradient(const Batch& text);
  /// Adds the squares of the store's gradients to those of the texts so far.
  void note_squares();

  const Task& task_;
  ParamStore& params_;
  AdaptOptions options_;
  std::vector<float> start_, squares_;  // of the dense parameters: trained values, mean squares and then their roots
  std::vector<double> table_squares_;   // of each table, over the elements that had a gradient
  std::vector<double> table_counts_;
  double mean_rms_ = 0;
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

}  // namespace capstan
