// Cross-entropy of integer targets, and of sets of labels.
// Equals its composition of primitives up to rounding (tests/core/fused/test_*.cpp) and has the gradients of finite
// differences (gradcheck_fused.cpp). Sums depend on shapes alone, not on the number of threads.
#pragma once

#include "core/autograd/var.hpp"

namespace capstan::CAPSTAN_PRECISION {

struct CrossEntropyOptions {
  int32_t ignored = -1;        // rows with this target add nothing and get zero gradients
  double label_smoothing = 0;  // s in [0, 1): the target distribution is (1 - s) * one-hot + s / V
  Array class_weights = {};    // (V): a row's loss is multiplied by its target's; empty: by 1
  bool count_correct = false;  // fill CrossEntropy::correct
  int64_t chunk_rows = 0;      // linear_cross_entropy: rows whose logits exist at a time; 0: chosen from V
};

/// The summed loss of rows, and the number of rows.
struct CrossEntropy {
  Var sum;              // scalar: natural-log loss summed over the counted rows
  int64_t targets = 0;  // rows that are not ignored
  /// Of these, the rows whose highest logit is the target's (the first of equal ones); 0 unless asked for.
  int64_t correct = 0;
};

/// -log softmax(logits)[target], summed.  logits: (..., V), targets: (...). Saves the logits and two values per row.
/// Throws std::invalid_argument naming the shapes, or id, row and V for a target outside [0, V).
CrossEntropy softmax_cross_entropy(const Var& logits, const Ids& targets, const CrossEntropyOptions& options = {});

/// softmax_cross_entropy(x W^T + b, targets) without ever holding all logits.  x: (..., D), weight: (V, D), bias: (V)
/// or undefined, targets: (...). When recording, the gradients of x, W and b are formed chunk by chunk in the forward
/// pass and only scaled in the pullback.
CrossEntropy linear_cross_entropy(const Var& x, const Var& weight, const Var& bias, const Ids& targets,
                                  const CrossEntropyOptions& options = {});

struct SigmoidCrossEntropyOptions {
  double label_smoothing = 0;  // s in [0, 1): targets are (1 - s) y + s / 2
  Array label_weights = {};    // (C): factors of the loss where y = 1; empty: 1
};

/// The sum over rows and labels of -w t log p - (1 - t) log(1 - p), p = 1 / (1 + e^-logit), t = (1 - s) y + s / 2: a
/// scalar. dlogit = (1 - t) p - w t (1 - p).  logits: (..., C), labels y: (..., C), 0 or 1. Saves logits and targets.
/// Throws std::invalid_argument naming the shapes, or a label that is neither.
Var sigmoid_cross_entropy(const Var& logits, const Ids& labels, const SigmoidCrossEntropyOptions& options = {});

}  // namespace capstan::CAPSTAN_PRECISION
