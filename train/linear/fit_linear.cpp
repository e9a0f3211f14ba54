// Cross-validation chooses a mix; then both kinds of each problem are solved for with all rows, in units that threads
// share out and a file keeps, and added up in the parameters.
// tests/train/linear/test_linear.cpp.
#include "train/linear/fit_linear.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"
#include "train/linear/cross_validation.hpp"
#include "train/linear/fit_adagrad.hpp"

namespace capstan {
namespace {

real* values_of(ParamStore& params, const std::string& name) { return params.values() + params.find(name).offset; }

/// Sets the bias to the log priors of the classes, which a text without known n-grams then has. The rest of
/// the bias goes into the weights, along the intercept, whose score is about 1 for other texts.
void take_log_priors_as_bias(const NgramRows& rows, const std::vector<float>& intercept, real* weight, real* bias) {
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
    const auto each = static_cast<double>(intercept[static_cast<size_t>(f)] / scale);
    for (int64_t c = 0; c < classes; ++c)
      weight[f * classes + c] += static_cast<real>(each * rest[static_cast<size_t>(c)]);
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
        base_weights_(static_cast<size_t>(2 * problem_count(rows)) * rows.base_factor().size(), 0),
        intercept_(rows.scale().size(), 0) {
    std::fill_n(weight_, rows.config().buckets * rows.classes(), real{0});
    std::fill_n(bias_, rows.classes(), real{0});
    for (int64_t row = 0; row < rows.rows(); ++row) all_.push_back(row);
  }

  /// Units of work are the two kinds of each problem, 2 p and 2 p + 1, and at the end the intercept.
  void solve(Progress* progress) {
    const int64_t kinds = 2 * problem_count(rows_), buckets = rows_.config().buckets, classes = rows_.classes();
    UnitWork units({rows_.work(), "solving", text_of(mix_)}, kinds + 1,
                   {{"weight", {buckets, classes}, weight_},
                    {"bias", {classes}, bias_},
                    {"base", {static_cast<int64_t>(base_weights_.size())}, base_weights_.data()},
                    {"intercept", {buckets}, intercept_.data()}});
    units.run(progress, 1, [&](int64_t unit, const UnitWork::TellShare& tell) -> UnitWork::FillIn {
      if (unit < kinds) return solve_kind_of(unit, tell);
      return [this, solved = solve_intercept(rows_, all_, seed_, tell)] {
        std::copy(solved.weights.begin(), solved.weights.end(), intercept_.begin());
      };
    });
    finish();
  }

 private:
  double factor_of(int64_t unit) const {
    return (unit % 2 == 1 ? mix_.ratios_share : mix_.plain_share) * mix_.inverse_temperature;
  }

  /// The two kinds of a problem are added to zeros: which of them comes first changes no bit.
  UnitWork::FillIn solve_kind_of(int64_t unit, const UnitWork::TellShare& tell) {
    if (factor_of(unit) == 0) return {};
    const int64_t kind = unit % 2 == 1 ? mix_.ratios : mix_.plain;
    return [this, unit, solved = solve_kind(rows_, all_, unit / 2, kind, seed_, tell)] {
      const int64_t column = positive_class(rows_, unit / 2);
      const double factor = factor_of(unit);
      for (int64_t f = 0; f < rows_.config().buckets; ++f)
        if (const float scale = rows_.scale()[static_cast<size_t>(f)]; scale != 0)
          weight_[f * rows_.classes() + column] +=
              static_cast<real>(factor * static_cast<double>(solved.weights[static_cast<size_t>(f)] / scale));
      bias_[column] += static_cast<real>(factor * static_cast<double>(solved.bias));
      std::copy(solved.base_weights.begin(), solved.base_weights.end(),
                base_weights_.begin() + unit * static_cast<int64_t>(solved.base_weights.size()));
    };
  }

  /// Adds the base classifier's weights and bias as the solutions weigh its scores.
  void add_base() {
    const BaseClassifier& base = *rows_.base();
    parallel_units(problem_count(rows_), [&](int64_t problem) {
      const int64_t column = positive_class(rows_, problem);
      for (const int64_t unit : {2 * problem, 2 * problem + 1})
        for (int64_t k = 0; k < base.columns; ++k) {
          stop_point();
          const auto each = static_cast<size_t>(k);
          const double share =
              factor_of(unit) * static_cast<double>(base_weights_[static_cast<size_t>(unit * base.columns + k)] *
                                                    rows_.base_factor()[each]);
          for (int64_t f = 0; f < rows_.config().buckets; ++f)
            weight_[f * rows_.classes() + column] += static_cast<real>(
                share * static_cast<double>(base.weight[static_cast<size_t>(f * base.columns) + each]));
          bias_[column] += static_cast<real>(share * static_cast<double>(base.bias[each]));
        }
    });
  }

  /// Completes the weights by what depends on all solutions.
  void finish() {
    if (rows_.base() != nullptr) add_base();
    for (size_t c = 0; c < mix_.corrections.size(); ++c) bias_[c] += static_cast<real>(mix_.corrections[c]);
    if (rows_.is_binary()) bias_[0] = -bias_[1];
    take_log_priors_as_bias(rows_, intercept_, weight_, bias_);
    if (!rows_.is_binary()) return;
    // 0 - w instead of -w: -0.0 would count as a row that is not zero and be written.
    for (int64_t f = 0; f < rows_.config().buckets; ++f) weight_[2 * f] = 0 - weight_[2 * f + 1];
    bias_[0] = -bias_[1];
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
  std::vector<float> base_weights_;  // of the scores of the base classifier, (units, columns)
  std::vector<float> intercept_;     // of solve_intercept(), by bucket
};

LinearFit solve(const NgramRows& rows, ParamStore& params, uint64_t seed, Progress* progress) {
  if (progress != nullptr) progress->begin("cross-validation");
  CrossValidated found = cross_validate(rows, seed, progress);
  if (progress != nullptr) progress->begin("solving with all texts");
  AllRows(rows, found.mix, seed, params).solve(progress);
  return std::move(found.fit);
}

}  // namespace

double fit_work(const NgramRows& rows) {
  if (rows.by_adagrad()) return adagrad_work(rows);
  return cross_validation_work(rows) + static_cast<double>(2 * problem_count(rows) + 1);
}

LinearFit fit_linear(const NgramRows& rows, ParamStore& params, uint64_t seed, Progress* progress) {
  std::copy(rows.scale().begin(), rows.scale().end(), values_of(params, "linear.scale"));
  LinearFit fit =
      rows.by_adagrad() ? fit_by_adagrad(rows, params, seed, progress) : solve(rows, params, seed, progress);
  if (fit.labels)
    std::copy(fit.labels->thresholds.begin(), fit.labels->thresholds.end(), values_of(params, "linear.threshold"));
  return fit;
}

}  // namespace capstan
