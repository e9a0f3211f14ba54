// A small copy of a run, for prediction alone: `capstan slim` and the Python package. What reads runs reads such a
// copy, except training. tests/cli/runs/test_slim.cpp holds what it keeps and what refuses it.
#pragma once

#include <cstdint>
#include <filesystem>

namespace capstan {

/// Of the bytes of a linear classifier's checkpoint.
constexpr double default_slim_size = 0.2;

struct SlimRun {
  int64_t bytes_before = 0, bytes = 0;    // of the folder of the checkpoint, in the run and in the copy
  int64_t ngrams_before = 0, ngrams = 0;  // of a linear classifier: buckets with weights
};

/// Writes the model that `run` is used with (its best, or else its last) to a new run folder, without what only
/// resuming needs. A linear classifier keeps those of its n-grams that decide most, in 8 bits per weight, as many as
/// make at most `size` times the bytes of its checkpoint; other models keep all weights, matrices in bf16. The folder
/// appears when it is complete. Training refuses it. Throws Error when `output` exists, for a run that is slim already,
/// for weights that are not finite, and where the copy would not be smaller; ConfigError for a size without n-grams.
SlimRun slim_run(const std::filesystem::path& run, const std::filesystem::path& output,
                 double size = default_slim_size);

}  // namespace capstan
