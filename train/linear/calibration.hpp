// What held-out texts tell: how good a linear classifier is, and how sure it may be. Solving (cross_validation),
// AdaGrad (fit_adagrad) and online learning share it. Sums go over rows in their order, so the bits do not depend on
// threads: tests/train/linear/test_calibration.cpp and test_linear.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/evaluation/evaluate.hpp"
#include "train/linear/ngram_rows.hpp"

namespace capstan {

/// What is known of a classifier when its weights have been found.
struct LinearFit {
  Evaluation held_out;                            // of texts that were held out, by models that did not see them
  std::optional<LabelFigures> labels;             // of the same texts, where a text has any number of labels
  std::optional<HeldOutPredictions> predictions;  // of the same texts, where a text has one label
  std::vector<std::string> report;                // lines for the log
  std::string warning;                            // that next to nothing was learnt; empty: it was
};

/// Sums over rows that were held out.
struct LogitStatistics {
  Evaluation of_rows;  // where a text has any number of labels, what is correct depends on thresholds, and stays 0
  double margins = 0;  // sum of the logits of labels that are right, less the mean logit of the others
  /// `weight`: how much the row counts in the loss.
  void add(const std::vector<double>& logits, const RowLabels& labels, bool multi_label, double weight);
};

/// A function that receives the logits of a row, its labels, and how much the row counts.
using RowVisit = std::function<void(const std::vector<double>& logits, const RowLabels& labels, double weight)>;
/// Calls its argument for each of some rows that were held out, in their order.
using VisitRows = std::function<void(const RowVisit&)>;
LogitStatistics statistics_of(const NgramRows& rows, const VisitRows& visit);
/// What held-out rows tell of a classifier, without lines for the log.
LinearFit fit_of(const NgramRows& rows, const VisitRows& visit);
/// How many of the held-out rows it is right about, or how well it finds their labels, in words.
std::string figures_of(const LinearFit& fit);

/// What scores are multiplied by to become logits, and the summed loss with it.
struct Temperature {
  double inverse, loss;
};

/// The temperature with the lowest loss, by golden section: the loss is convex in its inverse. It is the cross entropy
/// of the n rows whose labels have a probability of 1 - 2 / (n + 4), and the other labels the rest, by which it has a
/// minimum even if no row is on the wrong side. Of two classes with the same number of rows, these are the targets of
/// Platt (1999).
Temperature fit_temperature(int64_t rows,
                            const std::function<LogitStatistics(double inverse_temperature)>& statistics_of);

/// What is added to logits, by class, so that the mean probability of each class is its share among some rows, where
/// weights of classes have changed it. visit(f) calls f for each of the rows, several times in all.
std::vector<double> prior_corrections(const NgramRows& rows, const VisitRows& visit);

/// The probabilities of logits, as floats.
std::vector<float> probabilities_of(const std::vector<double>& logits, bool multi_label);

/// The logits of a text without known n-grams: their probabilities are the shares of the classes among the rows, where
/// each class has one text more.
std::vector<double> log_priors(const NgramRows& rows);
/// The same, where `counts` has the texts of each class and one more.
std::vector<double> log_priors(std::vector<double> counts, double texts, bool multi_label);

/// The fold of each row, from 0 to `folds` - 1. The rows of a class are spread evenly; of several labels, the first one
/// counts. A copy of a text is in the fold of the first one.
std::vector<int32_t> folds_of_rows(const NgramRows& rows, int64_t folds);

}  // namespace capstan
