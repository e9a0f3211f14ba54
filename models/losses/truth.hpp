// The input of the losses in models/losses, and the log probability of the true labels, made of primitives: a loss that
// core/fused does not have needs no pullback of its own. tests/models/test_classifier.cpp has extreme logits.
#pragma once

#include "core/autograd/var.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// The logits of a batch in training, and its true labels.
struct LossInput {
  const Var& logits;           // (N, C)
  const Ids& labels;           // (N), the class or ignored_target; with multi_label (N, C), 1 for the labels of a text
  const Array& class_weights;  // (C), factors of the loss where a class is true; empty: 1
  bool multi_label;            // a text has any number of the classes, each with a probability of its own
};

/// log p of the true labels. (N): p is the softmax at the label. Multi-label, (N, C): p is the sigmoid for each label
/// that a text has, and 1 - sigmoid for the others. Finite for every finite logit, and with its gradient also where p
/// is 0 or 1. Throws std::invalid_argument naming the shapes, or a label that is no class.
Var log_probability_of_truth(const LossInput& input);
/// The factor of each element of log_probability_of_truth(): the weight of its class; 1 for a label that the text does
/// not have; 0 for an ignored target.
Array factors_of_truth(const LossInput& input);

}  // namespace capstan::CAPSTAN_PRECISION
