#include "train/linear/fit_linear.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"
#include "train/linear/cross_validation.hpp"
#include "train/linear/ngram_passes.hpp"

namespace capstan {
namespace {

/// Which kinds all rows will be solved with is known only after cross-validation: their mean.
double solving_work() {
  double sum = 0;
  for (const SvmKind& kind : svm_kinds) sum += work_of(kind) / svm_kind_count;
  return sum;
}

real* values_of(ParamStore& params, const std::string& name) {
  const Param& param = params.find(name);
  return params.values() + param.offset;
}

/// The logits of a text without known n-grams become those of the shares of the classes; the n-grams get the rest of
/// the bias.
void take_shares_as_bias(const NgramRows& rows, const SvmSolution& presence, real* weight, real* bias) {
  const int64_t classes = rows.classes();
  std::vector<double> rest(bias, bias + classes);
  const std::vector<double> shares = logits_of_shares(rows);
  for (size_t c = 0; c < rest.size(); ++c) rest[c] -= shares[c];
  if (!rows.multi_label()) {  // a constant of all classes changes no probability
    const double mean = std::accumulate(rest.begin(), rest.end(), 0.0) / static_cast<double>(classes);
    for (double& of_class : rest) of_class -= mean;
  }
  for (int64_t c = 0; c < classes; ++c) bias[c] -= static_cast<real>(rest[static_cast<size_t>(c)]);
  for (int64_t f = 0; f < rows.config().buckets; ++f) {
    stop_point();
    const float scale = rows.scale()[static_cast<size_t>(f)];
    if (scale == 0) continue;
    const auto each = static_cast<double>(presence.weights[static_cast<size_t>(f)] / scale);
    for (int64_t c = 0; c < classes; ++c)
      weight[f * classes + c] += static_cast<real>(each * rest[static_cast<size_t>(c)]);
  }
}

/// Adds `factor` times a solution to the weights and the bias of a class, and what it makes of the base's.
void add_solution(const NgramRows& rows, const SvmSolution& solution, double factor, int64_t column, real* weight,
                  real* bias) {
  const int64_t classes = rows.classes(), buckets = rows.config().buckets;
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
}

/// Solves both kinds with all rows and adds them up.
void solve_all(const NgramRows& rows, const SvmMix& mix, uint64_t seed, ParamStore& params, Progress* progress) {
  const int64_t classes = rows.classes(), buckets = rows.config().buckets;
  real *const weight = values_of(params, "linear.weight"), *const bias = values_of(params, "linear.bias");
  std::copy(rows.scale().begin(), rows.scale().end(), values_of(params, "linear.scale"));
  std::vector<int64_t> all(static_cast<size_t>(rows.rows()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  std::fill_n(weight, buckets * classes, real{0});
  std::fill_n(bias, classes, real{0});
  const int64_t problems = problem_count(rows);
  std::mutex mutex;
  // The two solutions of a class are kept until both are there, so that they are added in a fixed order.
  std::vector<std::optional<SvmSolution>> first(static_cast<size_t>(problems)), second(first.size());
  SvmSolution presence;
  parallel_units(2 * problems + 1, [&](int64_t unit) {
    if (unit == 2 * problems) {
      presence = solve_presence(rows, all, seed);
      if (progress != nullptr) progress->add(solving_work());
      return;
    }
    const int64_t problem = unit / 2;
    const bool ratios = unit % 2 == 1;
    const double share = ratios ? mix.ratios_share : mix.plain_share;
    SvmSolution solved{std::vector<float>(static_cast<size_t>(buckets), 0.0F), 0, {}};
    if (share != 0)
      solved = solve_svm(rows, {all, positive_class(rows, problem), svm_kinds[ratios ? mix.ratios : mix.plain].cost,
                                ratios, random_key(seed, "order of rows")});
    if (progress != nullptr) progress->add(solving_work());
    const std::lock_guard<std::mutex> lock(mutex);
    auto &mine = (ratios ? second : first)[static_cast<size_t>(problem)],
         &other = (ratios ? first : second)[static_cast<size_t>(problem)];
    mine = std::move(solved);
    if (!other) return;
    const int64_t column = positive_class(rows, problem);
    add_solution(rows, *first[static_cast<size_t>(problem)], mix.plain_share * mix.factor, column, weight, bias);
    add_solution(rows, *second[static_cast<size_t>(problem)], mix.ratios_share * mix.factor, column, weight, bias);
    first[static_cast<size_t>(problem)].reset();
    second[static_cast<size_t>(problem)].reset();
  });
  for (size_t c = 0; c < mix.offsets.size(); ++c) bias[c] += static_cast<real>(mix.offsets[c]);
  if (rows.is_binary()) bias[0] = -bias[1];
  take_shares_as_bias(rows, presence, weight, bias);
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
  if (rows.by_passes()) return passes_work(rows);
  return cross_validation_work(rows) + static_cast<double>(2 * problem_count(rows) + 1) * solving_work();
}

LinearFit fit_linear(const NgramRows& rows, ParamStore& params, uint64_t seed, Progress* progress) {
  if (rows.by_passes()) return fit_by_passes(rows, params, seed, progress);
  HeldOut held_out(rows, seed);
  if (progress != nullptr) progress->begin("cross-validation");
  held_out.solve(progress);
  const SvmMix mix = held_out.best();
  if (progress != nullptr) progress->begin("solving with all texts");
  solve_all(rows, mix, seed, params, progress);
  LinearFit fit;
  fit.held_out = held_out.evaluate(mix);
  if (rows.multi_label()) {
    const std::vector<double> thresholds = held_out.label_report(mix).best_thresholds();
    std::copy(thresholds.begin(), thresholds.end(), values_of(params, "linear.threshold"));
    fit.labels = held_out.label_report(mix, thresholds).at(usual_threshold);
    fit.held_out.correct = fit.labels->exact;
  } else {
    fit.predictions = held_out.predictions(mix);
  }
  const std::vector<double> accuracies = held_out.accuracies(mix);
  fit.report.push_back(rows.report());
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
                  svm_kinds[mix.plain].cost, mix.ratios_share, svm_kinds[mix.ratios].cost, mix.factor));
  return fit;
}

}  // namespace capstan
