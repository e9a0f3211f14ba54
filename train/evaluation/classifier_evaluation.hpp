// Loss, decisions and ranks of a classifier over a whole split, for `capstan eval` and for validations of linear
// classifiers. tests/train/linear/test_linear.cpp.
#pragma once

#include <optional>

#include "train/evaluation/evaluate.hpp"

namespace capstan {

/// Loss, accuracy and report of a classifier over a whole split.
struct ClassifierEvaluation {
  Evaluation total;
  std::optional<ClassificationReport> report;  // where a text has one label: what the rule decides
  std::optional<ClassificationReport> plain;   // the likeliest classes, where there is another rule
  std::optional<RankedTexts> ranked;           // which texts come first for a class
  std::optional<LabelFigures> labels;          // where it has any number, at the model's thresholds
};

/// Evaluates a classifier that reads tokens and gives a text one label, which may be one of `unseen` further classes
/// that the model does not have. Throws Error if there is no example.
ClassifierEvaluation evaluate_classifier(const Model& classifier, const BatchSource& split,
                                         const DecisionRule& rule = {}, int64_t unseen = 0);

/// Evaluates a classifier that reads texts, with the same result on any number of threads. May stop
/// (core/base/stop.hpp). `unseen`: as above. Throws Error when there is no text.
ClassifierEvaluation evaluate_classifier(const Model& classifier, const LabelledTexts& texts,
                                         const DecisionRule& rule = {}, int64_t unseen = 0);

}  // namespace capstan
