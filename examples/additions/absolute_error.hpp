// The mean absolute error of the probability: a wrong label can cost no more than 1. Ghosh et al. 2017, arXiv
// 1712.09482.
#pragma once

#include "core/ops/ops.hpp"
#include "models/losses/loss_input.hpp"

namespace capstan {

struct AbsoluteErrorConfig {
  static constexpr const char* type_name = "absolute-error";
};
template <class Fields>
void describe(Fields&, AbsoluteErrorConfig&) {}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// The sum of 1 - p over the true classes, p of the softmax, and, of several labels, of p over the others, p of the
/// sigmoid: |y - p| = y + (1 - 2 y) p.
inline Var loss_sum(const AbsoluteErrorConfig&, const LossInput& input) {
  const Var p = input.multi_label ? sigmoid(input.logits) : softmax(input.logits);
  const int64_t classes = p.dim(1);
  Array truth(p.shape()), weight(p.shape());
  for (int64_t i = 0; i < p.value().size(); ++i) {
    const int64_t c = i % classes;
    const bool is_true = input.multi_label ? input.labels[i] == 1 : input.labels[i / classes] == c;
    truth.mutable_data()[i] = is_true ? real{1} : real{0};
    weight.mutable_data()[i] = is_true && !input.class_weights.empty() ? input.class_weights[c]
                               : is_true || input.multi_label          ? real{1}
                                                                       : real{0};
  }
  const Var y(truth);
  return sum(Var(weight) * (y + (1 - 2 * y) * p));
}

}  // namespace capstan::CAPSTAN_PRECISION
