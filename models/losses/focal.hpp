// Focal loss of a text classifier: texts that are classified well already count less. tests/models/test_classifier.cpp.
#pragma once

#include "core/config/schema.hpp"
#include "core/ops/ops.hpp"
#include "models/losses/truth.hpp"

namespace capstan {

struct FocalConfig {
  static constexpr const char* type_name = "focal";
  double gamma = 2;
};
template <class Fields>
void describe(Fields& f, FocalConfig& c) {
  f("gamma", c.gamma, between(0, 10), "how much less: the loss is multiplied by (1 - p)^gamma; 0 = cross-entropy");
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// -(1 - p)^gamma log p, where p is the probability of the true label (log_probability_of_truth). Lin et al. 2017,
/// arXiv 1708.02002, equation 5.
inline Var loss_sum(const FocalConfig& config, const LossInput& input) {
  constexpr double smallest = 1e-12;  // keeps log() and its gradient finite where p rounds to 1
  const Var log_p = log_probability_of_truth(input);
  const Var power = exp(log(1 - exp(log_p) + smallest) * config.gamma);
  return neg(sum(Var(factors_of_truth(input)) * power * log_p));
}

}  // namespace capstan::CAPSTAN_PRECISION
