// Cross-entropy of the rows of a matrix of logits: of one class each, or of labels that a row has or has not.
// Loops over pointers, rows shared out to the threads: results depend neither on the number of threads nor on the width
// of registers (tests/core/fused, tests/models/portable_levels.cpp).
#pragma once

#include <cstdint>

#include "core/base/real.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// A matrix of logits, the class that each row should have, and how the loss counts.
struct CrossEntropyPass {
  int64_t rows, columns;   // logits: (rows, columns)
  const int32_t* targets;  // (rows), each in [0, columns) or `ignored`
  int32_t ignored;
  real smoothing;                       // s: the target distribution is (1 - s) * one-hot + s / columns
  const real* class_weights = nullptr;  // (columns): loss and gradient of a row are times its target's; null: 1
};

/// loss (rows): -sum over j of target_j * log softmax(logits)_j; 0 for ignored rows. Of every row its largest logit
/// goes to `largest` and 1 / sum of e^(logit - largest) to `inverse`, unless these are null.
void cross_entropy_forward(const CrossEntropyPass& pass, const real* logits, real* loss, real* largest, real* inverse);

/// dlogits = factor * (softmax(logits) - target distribution), 0 in ignored rows; dlogits may be logits.
void cross_entropy_backward(const CrossEntropyPass& pass, const real* logits, const real* largest, const real* inverse,
                            real factor, real* dlogits);

/// Both in one: writes the losses and turns the logits into their gradients of the summed loss.
void cross_entropy_in_place(const CrossEntropyPass& pass, real* logits, real* loss);

/// Rows that are not ignored and whose first highest logit is the target's.
int64_t count_correct(const CrossEntropyPass& pass, const real* logits);

/// A matrix of logits, the labels that each row should have, and how the loss counts.
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

}  // namespace capstan::CAPSTAN_PRECISION::kernels
