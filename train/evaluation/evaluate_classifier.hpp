// Loss, accuracy and report of a classifier over a whole split.
#pragma once

#include <optional>

#include "data/batches/batcher.hpp"
#include "data/batches/labelled_texts.hpp"
#include "models/model.hpp"
#include "train/evaluation/classification_report.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/evaluation/ranked_texts.hpp"

namespace capstan {

struct ClassifierEvaluation {
  Evaluation total;
  std::optional<ClassificationReport> report;  // where a text has one label: what the rule decides
  std::optional<ClassificationReport> plain;   // the likeliest classes, where there is another rule
  std::optional<RankedTexts> ranked;           // which texts come first for a class
  std::optional<LabelFigures> labels;          // where it has any number, at the model's thresholds
};

/// Evaluates a classifier that reads tokens and gives a text one label. Throws Error if there is no example.
ClassifierEvaluation evaluate_classifier(const Model& classifier, const BatchSource& split,
                                         const DecisionRule& rule = {});

/// Of one that reads texts, independent of the number of threads. May stop (core/base/stop.hpp). Throws Error when
/// there is no text.
ClassifierEvaluation evaluate_classifier(const Model& classifier, const LabelledTexts& texts,
                                         const DecisionRule& rule = {});

}  // namespace capstan
