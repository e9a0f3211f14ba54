// Cross-entropy of independent labels, each of which a row has or has not, from a matrix of logits.
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace kernels {

struct SigmoidCrossEntropyPass {
  int64_t rows, columns;      // logits: (rows, columns)
  const real* targets;        // (rows, columns), t in [0, 1]
  const real* label_weights;  // (columns), w; null: 1
};

/// loss (rows): the sum over the columns of -w t log p - (1 - t) log(1 - p), with p = 1 / (1 + e^-logit).
void sigmoid_cross_entropy_forward(const SigmoidCrossEntropyPass& pass, const real* logits, real* loss);

/// dlogits = factor * ((1 - t) p - w t (1 - p)); dlogits may be logits.
void sigmoid_cross_entropy_backward(const SigmoidCrossEntropyPass& pass, const real* logits, real factor,
                                    real* dlogits);

}  // namespace kernels
}  // namespace capstan::CAPSTAN_PRECISION
