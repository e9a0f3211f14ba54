// How likely a language model finds texts, for `capstan score` and Run::score(). tests/run/test_probabilities.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/inputs/input_text.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {

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

/// Log probability, its mean per token, and the number of tokens, separated by tabs: a line of `capstan score`.
std::string score_tsv(const TextScore& score);
/// The same as JSON, with the text.
std::string score_json(const TextScore& score, const InputText& text);

}  // namespace capstan
