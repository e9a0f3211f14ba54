// What decided about a text, in words: `capstan predict --explain`. tests/cli/training/test_linear.cpp.
#pragma once

#include <string>

#include "run/predictions/predictions.hpp"

namespace capstan {

/// For each label of a prediction, a line with its decision value, then one for each of the ten n-grams that add most
/// to it or take most from it. Throws what explanation_of() throws.
std::string explanation_text(const SavedRun& run, const InputText& text, const Prediction& prediction);

}  // namespace capstan
