// What a loss of models/losses is computed from.
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

}  // namespace capstan::CAPSTAN_PRECISION
