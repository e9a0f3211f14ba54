// Finds by golden section the temperature that makes logits of scores, and by iteration the correction of each class. A
// few texts count as doubtful, so that no classifier is ever certain: tests/train/linear/test_calibration.cpp.
#include "train/linear/calibration.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "core/base/math.hpp"

namespace capstan {
namespace {

/// So many texts count as wrong and as many as right in addition to the others: "plus four" (Agresti and Coull 1998).
constexpr double doubted_texts = 2;

/// ln(1 + e^x)
double softplus(double x) { return std::max(x, 0.0) + math::log1p(math::exp(-std::abs(x))); }

/// The decisions about the labels of held-out texts, of which each has any number.
LabelReport label_report(const NgramRows& rows, const VisitRows& visit, const std::vector<double>& thresholds) {
  LabelReport report(rows.classes(), thresholds);
  visit([&](const std::vector<double>& logits, const RowLabels& labels, double) {
    std::vector<int32_t> flags(logits.size(), 0);
    for (const int32_t label : labels) flags[static_cast<size_t>(label)] = 1;
    report.add(probabilities_of(logits, true).data(), flags.data());
  });
  return report;
}

/// LinearFit::warning: where the loss is hardly below that of a classifier that knows the shares of the classes alone.
std::string warning_of(const NgramRows& rows, const VisitRows& visit, const Evaluation& held_out) {
  constexpr double hardly = 0.99;
  const std::vector<double> priors = log_priors(rows);
  std::vector<int64_t> texts(priors.size(), 0);
  LogitStatistics by_shares;
  visit([&](const std::vector<double>&, const RowLabels& labels, double weight) {
    by_shares.add(priors, labels, rows.multi_label(), weight);
    for (const int32_t label : labels) ++texts[static_cast<size_t>(label)];
  });
  const double of_shares = by_shares.of_rows.loss();
  if (held_out.targets == 0 || held_out.loss() < hardly * of_shares) return "";
  const auto largest = static_cast<double>(*std::max_element(texts.begin(), texts.end()));
  const std::string beside =
      fmt::format("; accuracy {:.2f} %, and the largest class has {:.2f} % of them", 100 * held_out.accuracy(),
                  100 * largest / static_cast<double>(held_out.targets));
  return fmt::format(
      "linear: next to nothing was learnt: on held-out texts the loss is {:.4f}, and {:.4f} by the shares of the "
      "classes "
      "alone{}",
      held_out.loss(), of_shares, rows.multi_label() ? "" : beside);
}

}  // namespace

void LogitStatistics::add(const std::vector<double>& logits, const RowLabels& labels, bool multi_label, double weight) {
  if (multi_label) {
    double loss = 0;
    for (size_t c = 0; c < logits.size(); ++c) {
      const bool has_it = labels.has(static_cast<int32_t>(c));
      const double margin = has_it ? logits[c] : -logits[c];
      loss += softplus(-margin);
      margins += weight * margin;
    }
    return of_rows.add({weight * loss, 1, 0});
  }
  const auto best = std::max_element(logits.begin(), logits.end());
  const double logit = logits[static_cast<size_t>(labels.front())];
  double exp_sum = 0, logit_sum = 0;
  for (const double of_class : logits) {
    exp_sum += math::exp(of_class - *best);
    logit_sum += of_class;
  }
  if (logits.size() > 1) margins += weight * (logit - (logit_sum - logit) / static_cast<double>(logits.size() - 1));
  of_rows.add({weight * (math::log(exp_sum) + *best - logit), 1, best - logits.begin() == labels.front() ? 1 : 0});
}

LogitStatistics statistics_of(const NgramRows& rows, const VisitRows& visit) {
  LogitStatistics total;
  visit([&](const std::vector<double>& logits, const RowLabels& labels, double weight) {
    total.add(logits, labels, rows.multi_label(), weight);
  });
  return total;
}

LinearFit fit_of(const NgramRows& rows, const VisitRows& visit) {
  LinearFit fit;
  fit.held_out = statistics_of(rows, visit).of_rows;
  fit.warning = warning_of(rows, visit, fit.held_out);
  if (rows.multi_label()) {
    const std::vector<double> used = label_report(rows, visit, {}).best_thresholds();
    fit.labels = label_report(rows, visit, used).at(default_threshold);
    fit.held_out.correct = fit.labels->exact;
    return fit;
  }
  fit.predictions.emplace(rows.classes());
  visit([&](const std::vector<double>& logits, const RowLabels& labels, double) {
    fit.predictions->add(probabilities_of(logits, false).data(), labels.front());
  });
  return fit;
}

std::string figures_of(const LinearFit& fit) {
  if (fit.labels) {
    const auto [lowest, highest] = std::minmax_element(fit.labels->thresholds.begin(), fit.labels->thresholds.end());
    return fmt::format("micro-F1 {:.2f} %, with thresholds of the labels from {:.2f} to {:.2f}",
                       100 * fit.labels->all.f1(), *lowest, *highest);
  }
  const double accuracy = fit.held_out.accuracy(),
               texts = static_cast<double>(std::max<int64_t>(fit.held_out.targets, 1));
  return fmt::format("accuracy {:.2f} % (standard error {:.2f})", 100 * accuracy,
                     100 * std::sqrt(accuracy * (1 - accuracy) / texts));
}

Temperature fit_temperature(int64_t rows,
                            const std::function<LogitStatistics(double inverse_temperature)>& statistics_of) {
  constexpr double golden = 0.6180339887498949, least = 1e-3, most = 1e4;
  const double doubt = doubted_texts / (static_cast<double>(rows) + 2 * doubted_texts);
  const auto loss = [&](double at) {
    const LogitStatistics statistics = statistics_of(math::exp(at));
    return statistics.of_rows.loss_sum + doubt * statistics.margins;
  };
  double low = math::log(least), high = math::log(most);
  double a = high - golden * (high - low), b = low + golden * (high - low), at_a = loss(a), at_b = loss(b);
  for (int step = 0; step < 20; ++step) {  // each leaves 0.618 of the interval: the temperature is then known to 0.1 %
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
  return {math::exp((low + high) / 2), loss((low + high) / 2)};
}

std::vector<float> probabilities_of(const std::vector<double>& logits, bool multi_label) {
  std::vector<float> probabilities;
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += math::exp(logit - most);
  for (const double logit : logits)
    probabilities.push_back(
        static_cast<float>(multi_label ? 1 / (1 + math::exp(-logit)) : math::exp(logit - most) / sum));
  return probabilities;
}

std::vector<double> prior_corrections(const NgramRows& rows, const VisitRows& visit) {
  constexpr int rounds = 12;     // each brings the mean probabilities closer to the shares
  constexpr double least = 0.5;  // added to the rows of each class: a class without rows would have no logarithm
  std::vector<double> corrections(static_cast<size_t>(rows.classes()), 0);
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> found(corrections.size(), least), wanted(corrections.size(), least);
    double total = 1;
    visit([&](std::vector<double> logits, const RowLabels& labels, double weight) {
      for (size_t c = 0; c < logits.size(); ++c) logits[c] += corrections[c];
      const std::vector<float> probabilities = probabilities_of(logits, rows.multi_label());
      for (size_t c = 0; c < logits.size(); ++c) found[c] += weight * static_cast<double>(probabilities[c]);
      for (const int32_t label : labels) wanted[static_cast<size_t>(label)] += weight;
      total += weight;
    });
    for (size_t c = 0; c < corrections.size(); ++c)
      corrections[c] += math::log(wanted[c] / found[c]) +
                        (rows.multi_label() ? math::log((total - found[c] + least) / (total - wanted[c] + least)) : 0);
    if (rows.is_binary()) {  // the logits of two classes are each other's negative
      corrections[1] = (corrections[1] - corrections[0]) / 2;
      corrections[0] = -corrections[1];
    }
  }
  return corrections;
}

std::vector<double> log_priors(const NgramRows& rows) {
  std::vector<double> counts(static_cast<size_t>(rows.classes()), 1);
  for (int64_t row = 0; row < rows.rows(); ++row)
    for (const int32_t label : rows.labels(row)) counts[static_cast<size_t>(label)] += rows.relative_weight(row);
  return log_priors(std::move(counts), static_cast<double>(rows.rows()), rows.multi_label());
}

std::vector<double> log_priors(std::vector<double> counts, double texts, bool multi_label) {
  double mean = 0;
  for (double& logit : counts) {
    logit = math::log(logit) - (multi_label ? math::log(texts + 2 - logit) : 0);
    mean += logit / static_cast<double>(counts.size());
  }
  for (double& logit : counts) logit -= multi_label ? 0 : mean;
  return counts;
}

std::vector<int32_t> folds_of_rows(const NgramRows& rows, int64_t folds) {
  std::vector<int32_t> folds_of(static_cast<size_t>(rows.rows()));
  std::vector<int64_t> met(static_cast<size_t>(rows.classes()) + 1, 0);  // by class, the last one without a label
  for (const size_t row : places_but(rows.copies(), folds_of.size())) {
    const RowLabels labels = rows.labels(static_cast<int64_t>(row));
    const int64_t label = labels.empty() ? rows.classes() : labels.front();
    folds_of[row] = static_cast<int32_t>((label + met[static_cast<size_t>(label)]++) % folds);
  }
  mark_copies(rows.copies(), folds_of);
  return folds_of;
}

}  // namespace capstan
