// A small copy of a run, for prediction alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace capstan {

struct SlimOptions {
  double size = 0;                 // of a linear classifier: the share of its file of weights that the new one has at
                                   // most; 0 = chosen by what it does to probabilities
  std::vector<std::string> texts;  // to measure that on; none: some of the run's data
};

/// What a small copy says of some texts, beside what the run says.
struct SlimEffect {
  double mean = 0, most = 0;      // over the texts: the largest change of a probability
  int64_t texts = 0, labels = 0;  // labels: of how many texts the likeliest class, or the set of labels, is another
};

/// A size that is chosen changes probabilities by so much at most, on average over the texts. Of texts that the model
/// was trained on, whose probabilities change up to three times less than those of others, by a third of it.
constexpr double most_slim_change = 0.01;

struct SlimRun {
  int64_t bytes_before = 0, bytes = 0;    // of the weights and of what only resuming needs
  int64_t ngrams_before = 0, ngrams = 0;  // of a linear classifier: buckets with weights
  SlimEffect effect;                      // of a linear classifier
  double loss_before = 0, loss = 0;       // of other models
  int64_t batches = 0;                    // that these are of; 0: not measured
  std::string measured_on;                // such texts, or why there are none
  double limit = most_slim_change;        // of effect.mean, where the size is chosen
};

/// What slim_run() found of the effect, in a sentence.
std::string effect_text(const SlimRun& said, const SlimOptions& options);

/// Writes the model that `run` is used with (its best, or else its last) to a new run folder, without what only
/// resuming needs. A linear classifier keeps those of its n-grams that decide most, in 8 bits per weight; other models
/// keep all weights, matrices in bf16. The size of a linear classifier is the smallest of some whose effect is within
/// most_slim_change; without texts to measure it on, all n-grams stay. The folder appears when it is complete. Training
/// refuses it. Throws Error when `output` exists, for a run that is slim already, and where the copy would not be
/// smaller.
SlimRun slim_run(const std::filesystem::path& run, const std::filesystem::path& output, const SlimOptions& options);

}  // namespace capstan
