#include "train/linear/fit_linear.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"
#include "train/linear/dual_svm.hpp"

namespace capstan {
namespace {

/// One of the two kinds of features, with a cost.
struct Kind {
  bool ratios;
  double cost;
};
constexpr Kind kinds[] = {{false, 0.25}, {false, 1}, {true, 0.25}, {true, 1}};
constexpr int kind_count = 4;

/// Shares of TF-IDF and of ratios in the sum.
constexpr double shares[][2] = {{1, 0}, {1, 0.5}, {1, 1}, {0.5, 1}, {0, 1}};

/// Passes over entries that cross-validation may take; it holds out fewer folds of larger data.
constexpr double most_work = 1.5e8;
constexpr int64_t most_scores = 30'000'000;  // of held-out rows

/// A sum of two kinds, times `factor`.
struct Mix {
  int plain = -1, ratios = -1;  // of `kinds`; -1: not part of it
  double plain_share = 0, ratios_share = 0, factor = 1;
  double loss = std::numeric_limits<double>::infinity();  // sum over held-out rows
};

/// The problems of C classes: a class against the other one, or each against all others.
int64_t problem_count(const NgramRows& rows) { return rows.is_binary() ? 1 : rows.classes(); }
/// With two classes, the problem's only class is the second one.
int32_t positive_class(const NgramRows& rows, int64_t problem) {
  return static_cast<int32_t>(rows.is_binary() ? 1 : problem);
}

/// The fold of each row: the rows of a class (of several, the first) are spread evenly.
std::vector<int64_t> folds_of(const NgramRows& rows, int64_t folds) {
  std::vector<int64_t> seen(static_cast<size_t>(rows.classes()) + 1, 0), fold(static_cast<size_t>(rows.rows()));
  for (int64_t row = 0; row < rows.rows(); ++row) {
    const LabelSet& labels = rows.labels(row);
    const auto label = static_cast<size_t>(labels.empty() ? rows.classes() : labels.front());
    fold[static_cast<size_t>(row)] = (static_cast<int64_t>(label) + seen[label]++) % folds;
  }
  return fold;
}

int64_t folds_of(const NgramRows& rows) { return std::min(rows.config().folds, rows.rows()); }

/// Folds that are held out in turn.
int64_t held_out_folds(const NgramRows& rows) {
  const double work = static_cast<double>(rows.entries() + rows.rows()) * static_cast<double>(problem_count(rows));
  return std::clamp(static_cast<int64_t>(most_work / work), int64_t{1}, folds_of(rows));
}

/// The work of solving for one class: smaller costs need fewer passes, ratios more. Measured on AG News and R8.
double work_of(const Kind& kind) { return (kind.cost < 1 ? 0.6 : 1) * (kind.ratios ? 1.2 : 1); }
/// Which kinds all rows will be solved with is known only after cross-validation: their mean.
double solving_work() {
  double sum = 0;
  for (const Kind& kind : kinds) sum += work_of(kind) / kind_count;
  return sum;
}
/// The same as work_of while a fold is held out.
double held_out_work_of(const NgramRows& rows, const Kind& kind) {
  const auto folds = static_cast<double>(folds_of(rows));
  return (folds - 1) / folds * work_of(kind);
}

/// Scores of held-out rows.
class HeldOut {
 public:
  HeldOut(const NgramRows& rows, uint64_t seed) : rows_(rows), seed_(seed), problems_(problem_count(rows)) {
    const std::vector<int64_t> fold = folds_of(rows, folds_of(rows));
    const int64_t used = held_out_folds(rows);
    const int64_t most_rows = std::max<int64_t>(100, most_scores / (problems_ * kind_count) / used);
    parts_.resize(static_cast<size_t>(used));
    for (int64_t row = 0; row < rows.rows(); ++row)
      for (int64_t part = 0; part < used; ++part) {
        Part& p = parts_[static_cast<size_t>(part)];
        if (fold[static_cast<size_t>(row)] != part)
          p.learnt.push_back(row);
        else if (static_cast<int64_t>(p.held_out.size()) < most_rows)
          p.held_out.push_back(row);
      }
    for (Part& part : parts_) part.scores.assign(part.held_out.size() * static_cast<size_t>(problems_ * kind_count), 0);
  }

  void solve(Progress* progress) {
    const auto parts = static_cast<int64_t>(parts_.size());
    parallel_units(parts * kind_count * problems_, [&](int64_t unit) {
      const int64_t problem = unit % problems_, kind = unit / problems_ % kind_count;
      Part& part = parts_[static_cast<size_t>(unit / problems_ / kind_count)];
      if (part.learnt.empty()) return;
      const SvmSolution solved = solve_svm(rows_, {part.learnt, positive_class(rows_, problem), kinds[kind].cost,
                                                   kinds[kind].ratios, random_key(seed_, "order of rows")});
      for (size_t i = 0; i < part.held_out.size(); ++i) {
        stop_point();
        part.scores[i * static_cast<size_t>(problems_ * kind_count) + static_cast<size_t>(kind * problems_ + problem)] =
            solved.score(rows_, part.held_out[i]);
      }
      if (progress != nullptr) progress->add(held_out_work_of(rows_, kinds[kind]));
    });
  }

  /// The mix with the lowest cross entropy.
  Mix best() const {
    std::vector<Mix> mixes;
    for (int plain = 0; plain < kind_count; ++plain)
      for (int ratios = 0; ratios < kind_count; ++ratios) {
        if (kinds[plain].ratios || !kinds[ratios].ratios) continue;
        for (const auto& share : shares) mixes.push_back({plain, ratios, share[0], share[1], 1, 0});
      }
    parallel_units(static_cast<int64_t>(mixes.size()),
                   [&](int64_t i) { choose_factor(mixes[static_cast<size_t>(i)]); });
    return *std::min_element(mixes.begin(), mixes.end(), [](const Mix& a, const Mix& b) { return a.loss < b.loss; });
  }

  Evaluation evaluate(const Mix& mix) const {
    Evaluation total;
    for (const Part& part : parts_) total.add(evaluate(part, mix));
    return total;
  }
  /// The decisions about the labels of held-out texts, if a text has any number of labels.
  LabelReport label_report(const Mix& mix, std::vector<double> thresholds = {}) const {
    LabelReport report(rows_.classes(), std::move(thresholds));
    for (const Part& part : parts_)
      for (size_t i = 0; i < part.held_out.size(); ++i) {
        stop_point();
        std::vector<float> probabilities;
        for (const double logit : logits_of(part, i, mix))
          probabilities.push_back(static_cast<float>(1 / (1 + std::exp(-logit))));
        std::vector<int32_t> truth(probabilities.size(), 0);
        for (const int32_t label : rows_.labels(part.held_out[i])) truth[static_cast<size_t>(label)] = 1;
        report.add(probabilities.data(), truth.data());
      }
    return report;
  }
  /// Accuracy per held-out fold.
  std::vector<double> accuracies(const Mix& mix) const {
    std::vector<double> all;
    for (const Part& part : parts_)
      if (!part.held_out.empty()) all.push_back(evaluate(part, mix).accuracy());
    return all;
  }

 private:
  struct Part {
    std::vector<int64_t> learnt, held_out;
    std::vector<float> scores;  // (held out, kinds, problems)
  };

  /// By golden section: the loss is convex in the factor.
  void choose_factor(Mix& mix) const {
    constexpr double golden = 0.6180339887498949;
    double low = std::log(0.25), high = std::log(64.0);
    const auto loss = [&](double at) {
      mix.factor = std::exp(at);
      return evaluate(mix).loss_sum;
    };
    double a = high - golden * (high - low), b = low + golden * (high - low), at_a = loss(a), at_b = loss(b);
    for (int step = 0; step < 12; ++step) {
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
    mix.loss = loss((low + high) / 2);
  }

  std::vector<double> logits_of(const Part& part, size_t held_out, const Mix& mix) const {
    const auto problems = static_cast<size_t>(problems_);
    std::vector<double> logits(static_cast<size_t>(rows_.classes()));
    const float* const scores = part.scores.data() + held_out * problems * kind_count;
    for (size_t p = 0; p < problems; ++p) {
      const double sum = mix.plain_share * static_cast<double>(scores[static_cast<size_t>(mix.plain) * problems + p]) +
                         mix.ratios_share * static_cast<double>(scores[static_cast<size_t>(mix.ratios) * problems + p]);
      logits[rows_.is_binary() ? 1 : p] = mix.factor * sum;
    }
    if (rows_.is_binary()) logits[0] = -logits[1];
    return logits;
  }

  Evaluation evaluate(const Part& part, const Mix& mix) const {
    Evaluation sums;
    for (size_t i = 0; i < part.held_out.size(); ++i) {
      stop_point();
      const std::vector<double> logits = logits_of(part, i, mix);
      const LabelSet& labels = rows_.labels(part.held_out[i]);
      sums.add(rows_.multi_label() ? of_labels(logits, labels) : of_class(logits, static_cast<size_t>(labels.front())));
    }
    return sums;
  }
  static Evaluation of_class(const std::vector<double>& logits, size_t label) {
    const auto best = std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit - *best);
    return {std::log(sum) + *best - logits[label], 1, static_cast<size_t>(best - logits.begin()) == label ? 1 : 0};
  }
  /// What is correct depends on thresholds.
  static Evaluation of_labels(const std::vector<double>& logits, const LabelSet& labels) {
    Evaluation sums{0, 1, 0};
    for (size_t c = 0; c < logits.size(); ++c) {
      const bool has_it = std::binary_search(labels.begin(), labels.end(), static_cast<int32_t>(c));
      const double against = has_it ? -logits[c] : logits[c];
      sums.loss_sum += std::max(against, 0.0) + std::log1p(std::exp(-std::abs(against)));
    }
    return sums;
  }

  const NgramRows& rows_;
  uint64_t seed_;
  int64_t problems_;
  std::vector<Part> parts_;
};

real* values_of(ParamStore& params, const std::string& name) {
  const Param& param = params.find(name);
  return params.values() + param.offset;
}

/// Solves both kinds with all rows and adds them up.
void solve_all(const NgramRows& rows, const Mix& mix, uint64_t seed, ParamStore& params, Progress* progress) {
  const int64_t classes = rows.classes(), buckets = rows.config().buckets;
  real *const weight = values_of(params, "linear.weight"), *const bias = values_of(params, "linear.bias");
  std::copy(rows.scale().begin(), rows.scale().end(), values_of(params, "linear.scale"));
  std::vector<int64_t> all(static_cast<size_t>(rows.rows()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  const auto add = [&](const SvmSolution& solution, double share, int64_t column) {
    const double factor = share * mix.factor;
    for (int64_t f = 0; f < buckets; ++f)
      if (const float scale = rows.scale()[static_cast<size_t>(f)]; scale != 0)
        weight[f * classes + column] +=
            static_cast<real>(factor * static_cast<double>(solution.weights[static_cast<size_t>(f)] / scale));
    bias[column] += static_cast<real>(factor * static_cast<double>(solution.bias));
    for (size_t k = 0; k < solution.base_weights.size(); ++k) {
      stop_point();
      const BaseClassifier& base = *rows.base();
      const double share_of_base = factor * static_cast<double>(solution.base_weights[k] * rows.base_factor()[k]);
      for (int64_t f = 0; f < buckets; ++f)
        weight[f * classes + column] += static_cast<real>(
            share_of_base * static_cast<double>(base.weight[static_cast<size_t>(f * base.columns) + k]));
      bias[column] += static_cast<real>(share_of_base * static_cast<double>(base.bias[k]));
    }
  };
  std::fill_n(weight, buckets * classes, real{0});
  std::fill_n(bias, classes, real{0});
  const int64_t problems = problem_count(rows);
  std::mutex mutex;
  // The two solutions of a class are kept until both are there, so that they are added in a fixed order.
  std::vector<std::optional<SvmSolution>> first(static_cast<size_t>(problems)), second(first.size());
  parallel_units(2 * problems, [&](int64_t unit) {
    const int64_t problem = unit / 2;
    const bool ratios = unit % 2 == 1;
    const double share = ratios ? mix.ratios_share : mix.plain_share;
    SvmSolution solved{std::vector<float>(static_cast<size_t>(buckets), 0.0F), 0, {}};
    if (share != 0)
      solved = solve_svm(rows, {all, positive_class(rows, problem), kinds[ratios ? mix.ratios : mix.plain].cost, ratios,
                                random_key(seed, "order of rows")});
    if (progress != nullptr) progress->add(solving_work());
    const std::lock_guard<std::mutex> lock(mutex);
    auto &mine = (ratios ? second : first)[static_cast<size_t>(problem)],
         &other = (ratios ? first : second)[static_cast<size_t>(problem)];
    mine = std::move(solved);
    if (!other) return;
    const int64_t column = positive_class(rows, problem);
    add(*first[static_cast<size_t>(problem)], mix.plain_share, column);
    add(*second[static_cast<size_t>(problem)], mix.ratios_share, column);
    first[static_cast<size_t>(problem)].reset();
    second[static_cast<size_t>(problem)].reset();
  });
  if (rows.is_binary()) {
    // The difference from 0, since -0.0 would count as a row that is not zero and be written.
    for (int64_t f = 0; f < buckets; ++f) weight[2 * f] = 0 - weight[2 * f + 1];
    bias[0] = -bias[1];
  }
}

std::string figures(const std::vector<double>& accuracies) {
  double mean = 0, squares = 0;
  for (const double a : accuracies) mean += a / static_cast<double>(accuracies.size());
  for (const double a : accuracies) squares += (a - mean) * (a - mean);
  if (accuracies.size() < 2) return fmt::format("{:.2f} %", 100 * mean);
  return fmt::format("{:.2f} % (standard deviation {:.2f})", 100 * mean,
                     100 * std::sqrt(squares / static_cast<double>(accuracies.size() - 1)));
}

std::string of_thresholds(const LabelFigures& labels) {
  const auto [lowest, highest] = std::minmax_element(labels.thresholds.begin(), labels.thresholds.end());
  return fmt::format("micro-F1 {:.2f} %, with thresholds of the labels from {:.2f} to {:.2f}", 100 * labels.all.f1(),
                     *lowest, *highest);
}

}  // namespace

double fit_work(const NgramRows& rows) {
  double of_fold = 0;
  for (const Kind& kind : kinds) of_fold += held_out_work_of(rows, kind);
  return static_cast<double>(problem_count(rows)) *
         (static_cast<double>(held_out_folds(rows)) * of_fold + 2 * solving_work());
}

LinearFit fit_linear(const NgramRows& rows, ParamStore& params, uint64_t seed, Progress* progress) {
  HeldOut held_out(rows, seed);
  if (progress != nullptr) progress->begin("cross-validation");
  held_out.solve(progress);
  const Mix mix = held_out.best();
  if (progress != nullptr) progress->begin("solving with all texts");
  solve_all(rows, mix, seed, params, progress);
  LinearFit fit;
  fit.held_out = held_out.evaluate(mix);
  if (rows.multi_label()) {
    const std::vector<double> thresholds = held_out.label_report(mix).best_thresholds();
    std::copy(thresholds.begin(), thresholds.end(), values_of(params, "linear.threshold"));
    fit.labels = held_out.label_report(mix, thresholds).at(usual_threshold);
    fit.held_out.correct = fit.labels->exact;
  }
  const std::vector<double> accuracies = held_out.accuracies(mix);
  fit.report.push_back(
      fmt::format("linear: {} texts, {} of {} buckets in use, {} n-grams a text", rows.rows(),
                  std::count_if(rows.scale().begin(), rows.scale().end(), [](float scale) { return scale != 0; }),
                  rows.scale().size(), rows.entries() / std::max<int64_t>(rows.rows(), 1)));
  if (const BaseClassifier* const base = rows.base(); base != nullptr)
    fit.report.push_back(fmt::format(
        "linear: the classifier that it starts from has {} buckets of n-grams; its scores are features, too",
        std::count_if(base->scale.begin(), base->scale.end(), [](float scale) { return scale != 0; })));
  fit.report.push_back(
      fmt::format("linear: {} of {} folds held out{}: {}; weights {:g} x TF-IDF (C {:g}) + {:g} x "
                  "log-count ratios (C {:g}), logits x {:.2f}",
                  accuracies.size(), folds_of(rows),
                  held_out_folds(rows) < folds_of(rows) ? " (fewer of many texts and classes, to save time)" : "",
                  fit.labels ? of_thresholds(*fit.labels) : "accuracy " + figures(accuracies), mix.plain_share,
                  kinds[mix.plain].cost, mix.ratios_share, kinds[mix.ratios].cost, mix.factor));
  return fit;
}

}  // namespace capstan
