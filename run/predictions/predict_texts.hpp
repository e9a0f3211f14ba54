// Predictions of all texts of an input: `capstan predict`. tests/cli/runs/test_predictions.cpp and
// tests/cli/inputs/test_tables.cpp.
#pragma once

#include <functional>
#include <string>

#include "run/inputs/text_input.hpp"
#include "run/predictions/prediction_writer.hpp"

namespace capstan {

/// Calls `take` with each text and its prediction, and `end_batch` after each batch.
void predict_texts(const SavedRun& run, TextInput& input, const PredictOptions& options,
                   const std::function<void(const InputText&, const Prediction&)>& take,
                   const std::function<void()>& end_batch);

/// Writes the table that is read to `path`, with the predictions as columns; whole or not at all. Only this shows
/// progress: nothing is printed meanwhile, and a table's size is known.
void write_predicted_table(const std::string& path, const SavedRun& run, TextInput& input,
                           const PredictOptions& options, const PredictionWriter& writer);

}  // namespace capstan
