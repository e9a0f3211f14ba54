// Scores and vectors of texts as lines: what `capstan score` and `capstan embed` print.
// tests/cli/runs/test_predictions.cpp.
#pragma once

#include <string>
#include <vector>

#include "run/inputs/input_text.hpp"
#include "run/predictions/text_scores.hpp"

namespace capstan {

/// Log probability, its mean per token, and the number of tokens, separated by tabs.
std::string score_tsv(const TextScore& score);
/// The same as JSON, with the text.
std::string score_json(const TextScore& score, const InputText& text);

/// A vector and its text, as JSON.
std::string vector_json(const std::vector<float>& vector, const InputText& text);

}  // namespace capstan
