// A small copy of a run, for prediction alone.
#pragma once

#include <cstdint>
#include <filesystem>

namespace capstan {

struct SlimOptions {
  double size = 0.1;  // of a linear classifier: the share of its file of weights that the new one has at most
};

struct SlimRun {
  int64_t bytes_before = 0, bytes = 0;    // of the weights and of what only resuming needs
  int64_t ngrams_before = 0, ngrams = 0;  // of a linear classifier: buckets with weights
};

/// Writes the model that `run` is used with (its best, or else its last) to a new run folder, without what only
/// resuming needs. A linear classifier keeps those of its n-grams that decide most, in 8 bits per weight; other models
/// keep all weights, matrices in bf16. The folder appears when it is complete. Training refuses it. Throws Error when
/// `output` exists, for a run that is slim already, and where the copy would not be smaller.
SlimRun slim_run(const std::filesystem::path& run, const std::filesystem::path& output, const SlimOptions& options);

}  // namespace capstan
