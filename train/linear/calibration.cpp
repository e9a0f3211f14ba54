#include "train/linear/calibration.hpp"

#include <algorithm>
#include <cmath>

namespace capstan {
namespace {

/// As many texts as if a wrong label was given to them: "plus four" (Agresti and Coull 1998).
constexpr double doubted_texts = 2;

/// ln(1 + e^x)
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

}  // namespace

void LogitSums::add(const std::vector<double>& logits, const RowLabels& labels, bool multi_label) {
  if (multi_label) {
    double loss = 0;
    for (size_t c = 0; c < logits.size(); ++c) {
      const bool has_it = labels.has(static_cast<int32_t>(c));
      const double margin = has_it ? logits[c] : -logits[c];
      loss += softplus(-margin);
      margins += margin;
    }
    return of_rows.add({loss, 1, 0});
  }
  const auto best = std::max_element(logits.begin(), logits.end());
  const double logit = logits[static_cast<size_t>(labels.front())];
  double sum = 0, all = 0;
  for (const double of_class : logits) {
    sum += std::exp(of_class - *best);
    all += of_class;
  }
  if (logits.size() > 1) margins += logit - (all - logit) / static_cast<double>(logits.size() - 1);
  of_rows.add({std::log(sum) + *best - logit, 1, best - logits.begin() == labels.front() ? 1 : 0});
}

BestFactor best_factor(int64_t rows, const std::function<LogitSums(double factor)>& sums_of) {
  constexpr double golden = 0.6180339887498949, least = 1e-3, most = 1e4;
  const double doubt = doubted_texts / (static_cast<double>(rows) + 2 * doubted_texts);
  const auto loss = [&](double at) {
    const LogitSums sums = sums_of(std::exp(at));
    return sums.of_rows.loss_sum + doubt * sums.margins;
  };
  double low = std::log(least), high = std::log(most);
  double a = high - golden * (high - low), b = low + golden * (high - low), at_a = loss(a), at_b = loss(b);
  for (int step = 0; step < 20; ++step) {
    if (at_a < at_b) {
      high = b;
      b = a;
      at_b = at_a;
      at_a = loss(a = high - golden * (high - low));
    } else {
      low = a;
      a = b;
      at_a = at_b;
      at_b = loss(b = low + golden * (high - low));
    }
  }
  return {std::exp((low + high) / 2), loss((low + high) / 2)};
}

std::vector<double> logits_of_shares(const NgramRows& rows) {
  std::vector<double> logits(static_cast<size_t>(rows.classes()), 1);
  for (int64_t row = 0; row < rows.rows(); ++row)
    for (const int32_t label : rows.labels(row)) ++logits[static_cast<size_t>(label)];
  double mean = 0;
  for (double& logit : logits) {
    logit = std::log(logit) - (rows.multi_label() ? std::log(static_cast<double>(rows.rows()) + 2 - logit) : 0);
    mean += logit / static_cast<double>(logits.size());
  }
  for (double& logit : logits) logit -= rows.multi_label() ? 0 : mean;
  return logits;
}

RowFolds::RowFolds(const NgramRows& rows, int64_t folds)
    : rows_(rows), folds_(folds), seen_(static_cast<size_t>(rows.classes()) + 1, 0) {}

int64_t RowFolds::next(int64_t row) {
  const RowLabels labels = rows_.labels(row);
  const auto label = static_cast<size_t>(labels.empty() ? rows_.classes() : labels.front());
  return (static_cast<int64_t>(label) + seen_[label]++) % folds_;
}

std::vector<int64_t> folds_of(const NgramRows& rows, int64_t folds) {
  RowFolds of(rows, folds);
  std::vector<int64_t> fold(static_cast<size_t>(rows.rows()));
  for (size_t row = 0; row < fold.size(); ++row) fold[row] = of.next(static_cast<int64_t>(row));
  return fold;
}

}  // namespace capstan
