// What the losses in this folder are computed from, and the log probability of what is true, made of primitives: losses
// that core/fused does not have need no pullback of their own. tests/models/test_classifier.cpp has extreme logits.
#pragma once

#include "core/autograd/var.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// The logits of a batch in training, and what is true.
struct LossInput {
  const Var& logits;           // (N, C)
  const Ids& labels;           // (N), the class or ignored_target; with multi_label (N, C), 1 for the labels of a text
  const Array& class_weights;  // (C), factors of the loss where a class is true; empty: 1
  bool multi_label;            // a text has any number of the classes, each with a probability of its own
};

/// log p of what is true: (N), of the label's softmax; multi-label (N, C), of the sigmoid of each label that a text
/// has, and of 1 - sigmoid of the others. Finite for every finite logit, and with its gradient also where p is 0 or 1.
/// Throws std::invalid_argument naming the shapes, or a label that is no class.
Var log_probability_of_truth(const LossInput& input);
/// The factor of each of these: the weight of its class, 1 for a label that a text has not, 0 for an ignored one.
Array factors_of_truth(const LossInput& input);

}  // namespace capstan::CAPSTAN_PRECISION
