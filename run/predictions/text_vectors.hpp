// Texts as vectors, for `capstan embed` and the server. tests/run/test_run.cpp and tests/cli/runs/test_predictions.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/inputs/input_text.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {

/// D elements for each text. Of a classifier, what its head reads; of other models, the mean of the last states over
/// the tokens of the text, which begins as in training. Texts are cut as in training (data.truncate), or to their
/// beginning where the model has fewer positions. A text without tokens has zeros. Texts run at once. Throws TextError.
/// `tokens`, unless null, receives how many tokens were read.
std::vector<std::vector<float>> vectors_of(const SavedRun& run, const std::vector<InputText>& texts,
                                           int64_t* tokens = nullptr);

/// A vector and its text, as JSON: a line of `capstan embed`.
std::string vector_json(const std::vector<float>& vector, const InputText& text);
/// A file of numpy.load(): (rows, columns) of float32.
std::string npy_content(const std::vector<std::vector<float>>& rows, int64_t columns);

}  // namespace capstan
