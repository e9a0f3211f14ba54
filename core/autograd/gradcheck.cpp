// The function runs once on a tape for the gradients, then twice for every entry that is checked, without one. It must
// be the same function each time: dropout draws by counters. The inputs are changed in place and restored.
#include "core/autograd/gradcheck.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.hpp"
#include "core/base/random.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

using Leaves = std::vector<std::pair<std::string, Var>>;

Array normal_numbers(const Shape& shape, const RandomKey& key) {
  RandomStream random(key);
  Array numbers(shape);
  real* const out = numbers.mutable_data();
  for (int64_t i = 0; i < numbers.size(); ++i) out[i] = static_cast<real>(random.normal());
  return numbers;
}

/// sum(R * y), R ~ N(0, 1): a plain sum would not see errors that cancel within a row, as those of a softmax do.
double projected(const Array& y, const Array& weights) {
  check(y.shape() == weights.shape(), "gradcheck: the function gives shapes {} and {}", weights.shape(), y.shape());
  double sum = 0;
  for (int64_t i = 0; i < y.size(); ++i) sum += static_cast<double>(weights[i]) * static_cast<double>(y[i]);
  return sum;
}

/// What rounding alone makes of a central difference of projected(): terms of this size are added up.
double rounding_of(const Array& y, const Array& weights, double step) {
  double sum = 0;
  for (int64_t i = 0; i < y.size(); ++i) sum += std::fabs(static_cast<double>(weights[i]) * static_cast<double>(y[i]));
  return 2 * std::numeric_limits<double>::epsilon() * sum / step;
}

/// "[1,0,3]": the place of element `index`.
std::string place(const Shape& shape, int64_t index) {
  std::string text;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    text = std::to_string(index % shape[axis]) + (text.empty() ? "" : ",") + text;
    index /= shape[axis];
  }
  return "[" + text + "]";
}

/// The entries of a tensor of `size` that are checked: all, or a fixed random choice in increasing order.
std::vector<int64_t> chosen_entries(int64_t size, const GradcheckOptions& options, size_t leaf) {
  const bool takes_all = options.samples == 0 || size <= options.samples;
  std::vector<int64_t> entries(static_cast<size_t>(takes_all ? size : options.samples));
  std::iota(entries.begin(), entries.end(), 0);
  if (takes_all) return entries;
  const RandomKey key = random_key(options.seed, "gradcheck samples");
  for (int64_t& entry : entries)
    entry = static_cast<int64_t>(permuted(static_cast<uint64_t>(entry), static_cast<uint64_t>(size), key, leaf));
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// Gradients of all leaves; a leaf that received none has zeros. Draws R for the shape of f().
std::vector<Array> analytic_gradients(const std::function<Var()>& f, const Leaves& leaves, uint64_t seed,
                                      Array& weights) {
  for (const auto& [name, leaf] : leaves) {
    check(leaf.needs_grad(), "gradcheck: {} is not a leaf that collects a gradient", name);
    leaf.clear_grad();
  }
  TapeScope scope;
  const Var y = f();
  weights = normal_numbers(y.shape(), random_key(seed, "gradcheck projection"));
  if (y.needs_grad()) scope.tape().backward(std::vector<Var>{y}, {weights});
  std::vector<Array> gradients;
  for (const auto& [name, leaf] : leaves) {
    gradients.push_back(leaf.has_grad() ? leaf.grad().clone() : Array::zeros(leaf.shape()));
    leaf.clear_grad();
  }
  return gradients;
}

/// Central difference of the projected f along one entry of a leaf.
double numeric_gradient(const std::function<Var()>& f, const Var& leaf, const Array& original, int64_t entry,
                        double step, const Array& weights) {
  const auto value_at = [&](double shift) {
    Array moved = original.clone();
    moved.mutable_data()[entry] += static_cast<real>(shift);
    leaf.assign(moved);
    return projected(f().value(), weights);
  };
  // The step that was really taken, after rounding.
  const double above = static_cast<double>(static_cast<real>(original[entry] + static_cast<real>(step)));
  const double below = static_cast<double>(static_cast<real>(original[entry] - static_cast<real>(step)));
  const double difference = value_at(step) - value_at(-step);
  return difference / (above - below);
}

/// The worst entry of one tensor.
struct Comparison {
  double worst = -1, largest = 0;  // max |analytic - numeric|, |numeric|
  std::string text;
};

Comparison compare(const std::function<Var()>& f, const std::string& name, const Var& leaf, const Array& gradient,
                   const std::vector<int64_t>& entries, const GradcheckOptions& options, const Array& weights) {
  Comparison result;
  const Array original = leaf.value().clone();
  for (const int64_t entry : entries) {
    const double analytic = static_cast<double>(gradient[entry]);
    const double numeric = numeric_gradient(f, leaf, original, entry, options.step, weights);
    const double error = std::fabs(analytic - numeric);
    result.largest = std::max(result.largest, std::fabs(numeric));
    if (std::isnan(result.worst) || error <= result.worst) continue;  // NaN is worst of all
    result.worst = error;
    result.text =
        fmt::format("{} {}: analytic {:.6g}, numeric {:.6g}", name, place(leaf.shape(), entry), analytic, numeric);
  }
  leaf.assign(original);
  return result;
}

/// An input from N(0, stddev^2), without elements near the kink.
Array drawn(const Shape& shape, const GradcheckOptions& options, RandomStream& random) {
  Array array(shape);
  real* const out = array.mutable_data();
  for (int64_t i = 0; i < array.size(); ++i) {
    double value;
    do value = options.stddev * random.normal();
    while (std::fabs(value - options.away.point) < options.away.distance);
    out[i] = static_cast<real>(value);
  }
  return array;
}

}  // namespace

GradcheckReport gradcheck(const std::function<Var()>& f, const Leaves& leaves, const GradcheckOptions& options) {
  Array weights;
  const std::vector<Array> gradients = analytic_gradients(f, leaves, options.seed, weights);
  const TapePause pause;
  const double floor = std::max(options.floor, rounding_of(f().value(), weights, options.step));
  GradcheckReport report;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const auto& [name, leaf] = leaves[i];
    const Comparison result =
        compare(f, name, leaf, gradients[i], chosen_entries(leaf.size(), options, i), options, weights);
    if (result.text.empty()) continue;  // no entries
    const double error = result.worst / std::max(result.largest, floor / options.tolerance);
    const bool passes = error <= options.tolerance;
    const bool worse = report.worst.empty() || error > report.error || (report.ok && !passes);
    if (worse && (report.ok || !passes)) {
      report.worst = result.text;
      report.error = error;
    }
    report.ok = report.ok && passes;
  }
  return report;
}

GradcheckReport gradcheck(const std::function<Var(const std::vector<Var>&)>& f, const std::vector<Array>& inputs,
                          const GradcheckOptions& options) {
  Leaves leaves;
  std::vector<Var> vars;
  for (const Array& input : inputs) {
    vars.push_back(Var::leaf(input));
    leaves.emplace_back("input " + std::to_string(vars.size() - 1), vars.back());
  }
  return gradcheck([&] { return f(vars); }, leaves, options);
}

GradcheckReport gradcheck(const std::function<Var(const std::vector<Var>&)>& f, const std::vector<Shape>& inputs,
                          const GradcheckOptions& options) {
  RandomStream random(random_key(options.seed, "gradcheck inputs"));
  std::vector<Array> values;
  for (const Shape& shape : inputs) values.push_back(drawn(shape, options, random));
  return gradcheck(f, values, options);
}

}  // namespace capstan::CAPSTAN_PRECISION
