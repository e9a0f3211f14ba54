// Weights of classes in the loss, from a list or from how often each class occurs ("balanced"), and the biases that
// belong to them. tests/models/test_classifier.cpp has the formulas.
#include "models/losses/class_weights.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/base/math.hpp"

namespace capstan {

std::vector<double> weights_of(const ClassWeights& config, const std::vector<int64_t>& class_counts, int64_t examples,
                               bool multi_label) {
  if (const auto* const listed = std::get_if<ListedWeights>(&config)) {
    if (listed->weights.size() != class_counts.size())
      throw ConfigError(fmt::format("model.class_weights.weights: {} weights for {} classes", listed->weights.size(),
                                    class_counts.size()));
    if (std::all_of(listed->weights.begin(), listed->weights.end(), [](double weight) { return weight == 0; }))
      throw ConfigError("model.class_weights.weights: all are 0: a class that is to be learnt needs a weight above 0");
    return listed->weights;
  }
  if (!std::holds_alternative<BalancedClasses>(config)) return {};
  const auto occurring =
      std::count_if(class_counts.begin(), class_counts.end(), [](int64_t count) { return count > 0; });
  std::vector<double> weights;
  for (const int64_t count : class_counts)
    if (multi_label)
      weights.push_back(
          count == 0 ? 1 : static_cast<double>(std::max<int64_t>(examples - count, 1)) / static_cast<double>(count));
    else
      weights.push_back(count == 0 ? 0 : static_cast<double>(examples) / static_cast<double>(occurring * count));
  return weights;
}

std::vector<double> log_weights_of(const std::vector<double>& class_weights) {
  std::vector<double> shifts;
  for (const double weight : class_weights) shifts.push_back(weight > 0 ? math::log(weight) : 0);
  return shifts;
}

}  // namespace capstan
