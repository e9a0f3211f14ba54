// The solver of LIBLINEAR with factors of features in place of scaled rows: entries are counts, which all problems
// share, and a weight knows the square of its feature's factor. Rows are visited in 16s, between which it may stop.
// tests/train/linear/test_linear.cpp.
#include "train/linear/dual_svm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"
#include "core/base/math.hpp"
#include "core/base/stop.hpp"

namespace capstan {
namespace {

constexpr int max_passes = 300;            // a solution that is not reached by then is taken as it is
constexpr size_t rows_between_stops = 16;  // a row takes a microsecond or, a whole book, a tenth of a second

/// A bucket's weight, and the square of the factor of its feature, which turns a step in the dual into one of the
/// weight.
struct Weight {
  float value, square;
};

/// Calls visit(bucket, norm * count_weight) for the entries of a row, words first.
template <class Visit>
void for_entries(const NgramRows& rows, int64_t row, const Visit& visit) {
  for (int which = 0; which < 2; ++which) {
    const NgramBlock block = rows.block(row, which);
    for (const NgramCount* entry = block.begin; entry != block.end; ++entry)
      visit(entry->bucket(), block.norm * count_weight(entry->count()));
  }
}

/// Loops over entries are functions of their own: inside a function that asks whether to stop, they are slower by a
/// third.
[[gnu::noinline]] void count_entries(const NgramRows& rows, int64_t row, float* counts) {
  for_entries(rows, row, [&](uint32_t bucket, float) { counts[bucket] += 1; });
}

/// By bucket: r of solve_svm().
std::vector<float> log_count_ratios(const NgramRows& rows, const SvmProblem& problem) {
  const auto buckets = rows.scale().size();
  std::vector<float> inside(buckets, 1), outside(buckets, 1);
  for (const int64_t row : problem.rows) {
    stop_point();
    count_entries(rows, row, (rows.has(row, problem.positive) ? inside : outside).data());
  }
  double sum_inside = 0, sum_outside = 0;
  for (size_t f = 0; f < buckets; ++f)
    if (rows.scale()[f] != 0) {
      sum_inside += static_cast<double>(inside[f]);
      sum_outside += static_cast<double>(outside[f]);
    }
  const double shift = math::log(sum_outside) - math::log(sum_inside);
  for (size_t f = 0; f < buckets; ++f)
    inside[f] = static_cast<float>(math::log(static_cast<double>(inside[f]) / static_cast<double>(outside[f])) + shift);
  return inside;
}

/// Dual coordinate descent on one problem. alpha_i >= 0 are the variables of the dual, one for each row.
class Solver {
 public:
  Solver(const NgramRows& rows, const SvmProblem& problem) : rows_(rows), problem_(problem), random_(problem.order) {
    weights_.resize(rows.scale().size());
    for (size_t f = 0; f < weights_.size(); ++f) weights_[f] = {0, rows.scale()[f] * rows.scale()[f]};
    if (problem.ratios) {
      const std::vector<float> ratios = log_count_ratios(rows, problem);
      for (size_t f = 0; f < weights_.size(); ++f) weights_[f].square *= ratios[f] * ratios[f];
    }
    base_weights_.assign(problem.intercept ? 0 : rows.base_factor().size(), 0);
    const size_t count = problem.rows.size();
    alpha_.assign(count, 0);
    diagonal_.resize(count);
    reset_active();
    for (size_t i = 0; i < count; ++i) {
      stop_point();
      signs_.push_back(problem.intercept || rows.has(problem.rows[i], problem.positive) ? 1 : -1);
      ridges_.push_back(ridge(problem.rows[i]));
      diagonal_[i] = squares_of(problem.rows[i]) + ridges_[i];
    }
  }

  /// Visits the active rows once, in a new order, and shrinks their set. Returns true when the solution is reached.
  bool pass() {
    for (size_t i = active_.size(); i > 1; --i) std::swap(active_[i - 1], active_[random_.below(i)]);
    highest_ = -infinity;
    lowest_ = infinity;
    size_t kept = 0;
    for (size_t at = 0; at < active_.size(); at += rows_between_stops) {
      stop_point();
      kept = visit(at, std::min(at + rows_between_stops, active_.size()), kept);
    }
    active_.resize(kept);
    if (kept == 0 || highest_ - lowest_ <= problem_.tolerance) {
      if (kept == alpha_.size()) return true;
      reset_active();  // rows that were left out are checked once more
      return false;
    }
    bound_ = highest_ <= 0 ? infinity : highest_;
    return false;
  }

  /// An estimate of the passes that are left, for progress: each about halves the largest gradient.
  double passes_left() const {
    return 2 + 1 / M_LN2 * math::log(std::max(1.0, (highest_ - lowest_) / problem_.tolerance));
  }

  SvmSolution solution() const {
    SvmSolution result;
    for (const Weight& weight : weights_) result.weights.push_back(weight.value);
    result.bias = static_cast<float>(bias_);
    result.base_weights = base_weights_;
    return result;
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  /// The sum of the squares of a row's features, that of the bias among them.
  [[gnu::noinline]] double squares_of(int64_t row) const {
    double squares = problem_.intercept ? 0 : 1;
    for_entries(rows_, row,
                [&](uint32_t bucket, float x) { squares += static_cast<double>(x * x * weights_[bucket].square); });
    const float* const scores = rows_.base_scores(row);
    for (size_t k = 0; k < base_weights_.size(); ++k) squares += static_cast<double>(scores[k] * scores[k]);
    return squares;
  }
  /// Visits the active rows at places [at, end) and moves those that stay active to the front, after the `kept` ones
  /// there. Returns how many these are now.
  [[gnu::noinline]] size_t visit(size_t at, size_t end, size_t kept) {
    double highest = highest_, lowest = lowest_;
    for (; at < end; ++at) {
      const int64_t i = active_[at];
      const auto gradient = gradient_of(i);
      const double alpha = alpha_[static_cast<size_t>(i)];
      if (alpha == 0 && gradient > bound_) continue;  // no support vector: it would stay at zero
      active_[kept++] = i;
      const double projected = alpha == 0 ? std::min(gradient, 0.0) : gradient;
      highest = std::max(highest, projected);
      lowest = std::min(lowest, projected);
      if (std::abs(projected) > 1e-12) move(i, gradient);  // as in LIBLINEAR: a smaller step changes nothing
    }
    highest_ = highest;
    lowest_ = lowest;
    return kept;
  }
  /// 1 / (2 C g): what the squared loss adds to the diagonal of the dual.
  double ridge(int64_t row) const {
    constexpr double min_weight = 1e-6;  // a row of weight 0 has no inverse
    const double weight = problem_.intercept ? rows_.weight(row) : rows_.weight(row, problem_.positive);
    return 0.5 / (problem_.cost * std::max(weight, min_weight));
  }
  double sign(int64_t i) const { return signs_[static_cast<size_t>(i)]; }
  /// The derivative of the dual by alpha_i.
  double gradient_of(int64_t i) const {
    const int64_t row = problem_.rows[static_cast<size_t>(i)];
    float sum = 0;
    for_entries(rows_, row, [&](uint32_t bucket, float x) { sum += x * weights_[bucket].value; });
    const float* const scores = rows_.base_scores(row);
    for (size_t k = 0; k < base_weights_.size(); ++k) sum += scores[k] * base_weights_[k];
    return sign(i) * (static_cast<double>(sum) + bias_) - 1 +
           ridges_[static_cast<size_t>(i)] * alpha_[static_cast<size_t>(i)];
  }
  /// Minimises the dual over alpha_i, and changes the weights accordingly.
  void move(int64_t i, double gradient) {
    double& alpha = alpha_[static_cast<size_t>(i)];
    const double before = alpha;
    alpha = std::max(alpha - gradient / diagonal_[static_cast<size_t>(i)], 0.0);
    const double change = (alpha - before) * sign(i);
    if (change == 0) return;
    const int64_t row = problem_.rows[static_cast<size_t>(i)];
    const auto step = static_cast<float>(change);
    for_entries(rows_, row,
                [&](uint32_t bucket, float x) { weights_[bucket].value += step * x * weights_[bucket].square; });
    const float* const scores = rows_.base_scores(row);
    for (size_t k = 0; k < base_weights_.size(); ++k) base_weights_[k] += step * scores[k];
    if (!problem_.intercept) bias_ += change;
  }
  void reset_active() {
    active_.resize(alpha_.size());
    for (size_t i = 0; i < active_.size(); ++i) active_[i] = static_cast<int64_t>(i);
    bound_ = infinity;
  }

  const NgramRows& rows_;
  const SvmProblem& problem_;
  RandomStream random_;
  std::vector<Weight> weights_;
  std::vector<float> base_weights_;
  std::vector<double> alpha_, diagonal_, ridges_, signs_;  // signs_ 1: the row has the label, -1: it does not
  std::vector<int64_t> active_;                            // places in problem_.rows
  double bias_ = 0, highest_ = 0, lowest_ = 0;             // highest_ and lowest_ of the projected gradients of a pass
  double bound_ = infinity;                                // a row with alpha 0 and a gradient above it is left out
};

}  // namespace

float SvmSolution::score(const NgramRows& rows, int64_t row) const {
  float sum = bias;
  for_entries(rows, row, [&](uint32_t bucket, float x) { sum += x * weights[bucket]; });
  const float* const scores = rows.base_scores(row);
  for (size_t k = 0; k < base_weights.size(); ++k) sum += scores[k] * base_weights[k];
  return sum;
}

float SvmSolution::score_of_unknown(const NgramRows& rows) const {
  float sum = bias;
  for (size_t k = 0; k < base_weights.size(); ++k)
    sum += rows.base()->bias[k] * rows.base_factor()[k] * base_weights[k];
  return sum;
}

SvmSolution solve_svm(const NgramRows& rows, const SvmProblem& problem, const std::function<void(double)>& tell) {
  check(!problem.rows.empty() && problem.cost > 0, "solve_svm: no rows or no cost");
  Solver solver(rows, problem);
  for (int passes = 1; !solver.pass() && passes < max_passes; ++passes)
    if (tell) tell(passes / (passes + solver.passes_left()));
  return solver.solution();
}

}  // namespace capstan
