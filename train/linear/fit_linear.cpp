// Cross-validation chooses a mix; then both kinds of each problem are solved for with all rows, in units that
// threads share out and files keep, and added up in the parameters in a fixed order.
// tests/train/linear/test_linear.cpp.
#include "train/linear/fit_linear.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include <fmt/core.h>

#include "core/base/stop.hpp"
#include "train/linear/cross_validation.hpp"
#include "train/linear/fit_adagrad.hpp"

namespace capstan {
namespace {

/// The mean work of the kinds: which of them all rows are solved with is known only after cross-validation.
double solving_work() {
  double sum = 0;
  for (const SvmKind& kind : svm_kinds) sum += work_of(kind) / svm_kind_count;
  return sum;
}

real* values_of(ParamStore& params, const std::string& name) {
  const Param& param = params.find(name);
  return params.values() + param.offset;
}

/// Sets the bias to the log priors of the classes, which a text without known n-grams then has. The rest of
/// the bias goes into the weights, along the intercept, whose score is about 1 for other texts.
void take_log_priors_as_bias(const NgramRows& rows, const SvmSolution& intercept, real* weight, real* bias) {
  const int64_t classes = rows.classes();
  std::vector<double> rest(bias, bias + classes);
  const std::vector<double> priors = log_priors(rows);
  for (size_t c = 0; c < rest.size(); ++c) rest[c] -= priors[c];
  if (!rows.multi_label()) {  // a constant of all classes changes no probability
    const double mean = std::accumulate(rest.begin(), rest.end(), 0.0) / static_cast<double>(classes);
    for (double& of_class : rest) of_class -= mean;
  }
  for (int64_t c = 0; c < classes; ++c) bias[c] -= static_cast<real>(rest[static_cast<size_t>(c)]);
  for (int64_t f = 0; f < rows.config().buckets; ++f) {
    stop_point();
    const float scale = rows.scale()[static_cast<size_t>(f)];
    if (scale == 0) continue;
    const auto each = static_cast<double>(intercept.weights[static_cast<size_t>(f)] / scale);
    for (int64_t c = 0; c < classes; ++c)
      weight[f * classes + c] += static_cast<real>(each * rest[static_cast<size_t>(c)]);
  }
}

/// Adds `factor` times a solution to the weights and the bias of a class, and the base classifier's weights and bias as
/// the solution weighs its scores.
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

/// Solves both kinds of a mix with all rows and adds them up in the parameters.
class AllRows {
 public:
  AllRows(const NgramRows& rows, const SvmMix& mix, uint64_t seed, ParamStore& params)
      : rows_(rows),
        mix_(mix),
        seed_(seed),
        weight_(values_of(params, "linear.weight")),
        bias_(values_of(params, "linear.bias")),
        first_(static_cast<size_t>(problem_count(rows))),
        second_(first_.size()) {
    std::copy(rows.scale().begin(), rows.scale().end(), values_of(params, "linear.scale"));
    std::fill_n(weight_, rows.config().buckets * rows.classes(), real{0});
    std::fill_n(bias_, rows.classes(), real{0});
    for (int64_t row = 0; row < rows.rows(); ++row) all_.push_back(row);
  }

  /// Units of work are the two kinds of each problem, 2 p and 2 p + 1, and at the end the intercept.
  void solve(Progress* progress) {
    UnitWork::Units all;
    const int64_t intercept = 2 * problem_count(rows_);
    all.count = intercept + 1;
    all.work = [](int64_t) { return solving_work(); };
    all.result = [&](int64_t unit) { return result_of(unit); };
    UnitWork units(rows_.work(), "solving", fmt::format("{} {}", identity_of(rows_, seed_), text_of(mix_)),
                   std::move(all));
    units.run(progress, [&](int64_t unit, UnitRun& run) {
      if (unit == intercept) {
        intercept_ = solve_intercept(rows_, all_, seed_, &run);
        units.finished({unit});
      } else if (take(unit, solve_unit(unit, &run))) {
        units.finished({unit / 2 * 2, unit / 2 * 2 + 1});
      }
    });
    finish();
  }

 private:
  /// Completes the weights by what depends on all solutions.
  void finish() {
    for (size_t c = 0; c < mix_.corrections.size(); ++c) bias_[c] += static_cast<real>(mix_.corrections[c]);
    if (rows_.is_binary()) bias_[0] = -bias_[1];
    take_log_priors_as_bias(rows_, intercept_, weight_, bias_);
    if (!rows_.is_binary()) return;
    // 0 - w instead of -w: -0.0 would count as a row that is not zero and be written.
    for (int64_t f = 0; f < rows_.config().buckets; ++f) weight_[2 * f] = 0 - weight_[2 * f + 1];
    bias_[0] = -bias_[1];
  }

  SvmSolution solve_unit(int64_t unit, UnitRun* run) const {
    const bool ratios = unit % 2 == 1;
    if ((ratios ? mix_.ratios_share : mix_.plain_share) == 0)
      return {std::vector<float>(rows_.scale().size(), 0.0F), 0, {}};
    return solve_kind(rows_, all_, unit / 2, ratios ? mix_.ratios : mix_.plain, seed_, run);
  }

  /// The two solutions of a problem are kept until both are there, so that they are added in a fixed order. Returns
  /// true when they were.
  bool take(int64_t unit, SvmSolution solved) {
    const auto problem = static_cast<size_t>(unit / 2);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      (unit % 2 == 1 ? second_ : first_)[problem] = std::move(solved);
      if (!first_[problem] || !second_[problem]) return false;
    }
    const int64_t column = positive_class(rows_, unit / 2);
    add_solution(rows_, *first_[problem], mix_.plain_share * mix_.inverse_temperature, column, weight_, bias_);
    add_solution(rows_, *second_[problem], mix_.ratios_share * mix_.inverse_temperature, column, weight_, bias_);
    first_[problem].reset();
    second_[problem].reset();
    return true;
  }

  /// The result of a unit: a problem's column of the weights, and its bias, which its first unit has for both.
  std::vector<StridedNumbers> result_of(int64_t unit) {
    const int64_t buckets = rows_.config().buckets;
    if (unit == 2 * problem_count(rows_)) {
      intercept_.weights.resize(static_cast<size_t>(buckets));
      return {{intercept_.weights.data(), buckets}};
    }
    if (unit % 2 == 1) return {};
    const int64_t column = positive_class(rows_, unit / 2);
    return {{weight_ + column, buckets, rows_.classes()}, {bias_ + column, 1}};
  }

  static std::string text_of(const SvmMix& mix) {
    return fmt::format("{} {} {} {} {}", mix.plain, mix.ratios, mix.plain_share, mix.ratios_share,
                       mix.inverse_temperature);
  }

  const NgramRows& rows_;
  const SvmMix& mix_;
  uint64_t seed_;
  real *weight_, *bias_;
  std::vector<int64_t> all_;
  std::mutex mutex_;
  std::vector<std::optional<SvmSolution>> first_, second_;  // by problem
  SvmSolution intercept_;
};

/// Mean and standard deviation of the folds' accuracies, in words.
std::string figures(const std::vector<double>& accuracies) {
  double mean = 0, squares = 0;
  for (const double a : accuracies) mean += a / static_cast<double>(accuracies.size());
  for (const double a : accuracies) squares += (a - mean) * (a - mean);
  if (accuracies.size() < 2) return fmt::format("{:.2f} %", 100 * mean);
  return fmt::format("{:.2f} % (standard deviation {:.2f})", 100 * mean,
                     100 * std::sqrt(squares / static_cast<double>(accuracies.size() - 1)));
}

/// Micro-F1 of held-out texts and the range of the labels' thresholds, in words.
std::string of_thresholds(const LabelFigures& labels) {
  const auto [lowest, highest] = std::minmax_element(labels.thresholds.begin(), labels.thresholds.end());
  return fmt::format("micro-F1 {:.2f} %, with thresholds of the labels from {:.2f} to {:.2f}", 100 * labels.all.f1(),
                     *lowest, *highest);
}

/// What the held-out rows tell of a mix, with lines for the log.
LinearFit fit_of_mix(const NgramRows& rows, const HeldOut& held_out, const SvmMix& mix) {
  LinearFit fit = held_out.fit(mix);
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
                  svm_kinds[mix.plain].cost, mix.ratios_share, svm_kinds[mix.ratios].cost, mix.inverse_temperature));
  return fit;
}

}  // namespace

double fit_work(const NgramRows& rows) {
  if (rows.by_adagrad()) return adagrad_work(rows);
  return cross_validation_work(rows) + static_cast<double>(2 * problem_count(rows) + 1) * solving_work();
}

LinearFit fit_linear(const NgramRows& rows, ParamStore& params, uint64_t seed, Progress* progress) {
  if (rows.by_adagrad()) return fit_by_adagrad(rows, params, seed, progress);
  HeldOut held_out(rows, seed);
  if (progress != nullptr) progress->begin("cross-validation");
  held_out.solve(progress);
  const SvmMix mix = held_out.best(progress);
  if (progress != nullptr) progress->begin("solving with all texts");
  AllRows(rows, mix, seed, params).solve(progress);
  LinearFit fit = fit_of_mix(rows, held_out, mix);
  if (rows.multi_label())
    std::copy(fit.labels->thresholds.begin(), fit.labels->thresholds.end(), values_of(params, "linear.threshold"));
  return fit;
}

}  // namespace capstan
