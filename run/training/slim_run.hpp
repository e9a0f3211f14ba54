// A small copy of a run, for prediction alone: `capstan slim` and the Python package. What reads runs reads such a
// copy, except training. tests/cli/runs/test_slim.cpp holds what it keeps and what refuses it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace capstan {

struct SlimOptions {
  double size = 0;                 // of a linear classifier: the share of the bytes of its checkpoint that the copy has
                                   // at most; 0 = chosen by what it does to probabilities
  std::vector<std::string> texts;  // to measure the change of probabilities on; none: some of the run's data
};

/// How the predictions of a small copy for some texts differ from those of the run.
struct SlimEffect {
  double mean = 0, most = 0;  // over the texts: the largest change of a probability
  int64_t texts = 0;
};

/// A size that is chosen changes probabilities by so much at most, on average over the texts. For texts that the model
/// was trained on it is a third, since their probabilities change up to three times less than those of others.
constexpr double max_slim_change = 0.01;

struct SlimRun {
  int64_t bytes_before = 0, bytes = 0;    // of the folder of the checkpoint, in the run and in the copy
  int64_t ngrams_before = 0, ngrams = 0;  // of a linear classifier: buckets with weights
  SlimEffect effect;                      // of a linear classifier
  std::string measured_on;                // the name of the data that it was measured on, or why it was not measured
  double limit = max_slim_change;         // of effect.mean, where the size is chosen
};

/// What slim_run() found of the effect, in a sentence.
std::string effect_text(const SlimRun& result, const SlimOptions& options);

/// Writes the model that `run` is used with (its best, or else its last) to a new run folder, without what only
/// resuming needs. A linear classifier keeps those of its n-grams that decide most, in 8 bits per weight; other models
/// keep all weights, matrices in bf16. The size of a linear classifier is the smallest of some whose effect is within
/// max_slim_change; without texts to measure it on, all n-grams stay. The folder appears when it is complete. Training
/// refuses it. Throws Error when `output` exists, for a run that is slim already, for weights or probabilities
/// that are not finite, and where the copy would not be smaller.
SlimRun slim_run(const std::filesystem::path& run, const std::filesystem::path& output, const SlimOptions& options);

}  // namespace capstan
