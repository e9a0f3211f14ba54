// The mean absolute error of the probability: a wrong label can cost no more than 1. Ghosh et al. 2017, arXiv
// 1712.09482.
#pragma once

#include "core/ops/ops.hpp"
#include "models/losses/truth.hpp"

namespace capstan {

struct AbsoluteErrorConfig {
  static constexpr const char* type_name = "absolute-error";
};
template <class Fields>
void describe(Fields&, AbsoluteErrorConfig&) {}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// The sum over examples of 1 - p, where p is the probability of the true class.
inline Var loss_sum(const AbsoluteErrorConfig&, const LossInput& input) {
  return sum(Var(factors_of_truth(input)) * (1 - exp(log_probability_of_truth(input))));
}

}  // namespace capstan::CAPSTAN_PRECISION
