// How likely a language model finds texts, for `capstan score` and Run::score(). tests/run/test_probabilities.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/array/batch.hpp"
#include "run/inputs/input_text.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {

/// How a text is read to be scored.
struct ScoreWindows {
  std::optional<int64_t> length;             // of a window, in tokens; none: any
  std::optional<int64_t> overlap;            // tokens that are read again; none: half (window_begin())
  std::function<double(const Batch&)> loss;  // of a window's labels, summed, in nats; asked in the order of the text
};

struct TextScore {
  double log_probability = 0;  // natural logarithm, of all tokens
  int64_t tokens = 0;          // tokens that were predicted: the text's and, where the model knows documents, its end
  double per_token() const { return log_probability / static_cast<double>(tokens > 0 ? tokens : 1); }
};

/// The score of each text: a document of its own, or with data of type pairs the target (`label`) after the source. A
/// text that is longer than the model's positions is read in windows, of which each token sees at least the preceding
/// half. Texts run in parallel. Throws Error for a model that is no language model, and TextError, for an empty target,
/// too.
std::vector<TextScore> scores_of(const SavedRun& run, const std::vector<InputText>& texts);
/// The score of one text by the losses of its windows. Throws Error where it cannot be used or is not finite.
TextScore score_of(const SavedRun& run, const InputText& text, const ScoreWindows& windows);

}  // namespace capstan
