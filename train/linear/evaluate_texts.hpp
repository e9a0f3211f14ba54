// Loss, accuracy and report of a linear classifier over the texts of a split.
#pragma once

#include <functional>
#include <optional>

#include "data/batches/labelled_texts.hpp"
#include "models/linear_classifier.hpp"
#include "train/evaluation/classification_report.hpp"

namespace capstan {

/// Independent of the number of threads. Empty when `stop`, which is called from any thread, returned true. Throws Error
/// when there is no text.
std::optional<ClassifierEvaluation> evaluate_texts(const LinearClassifier& classifier, const LabelledTexts& texts,
                                                   const std::function<bool()>& stop = {});

}  // namespace capstan
