// The losses that a classifier can have: a new loss is an include and an entry in LossConfig (docs/adding.md).
#pragma once

#include <variant>

#include "models/losses/cross_entropy.hpp"

namespace capstan {

/// YAML: model: {loss: {type: cross-entropy, label_smoothing: 0.1}}. Each has `Var loss_sum(const Config&, const
/// LossInput&)`: a scalar, the sum over the texts of a batch in training. Evaluation computes the cross-entropy, so
/// that losses can be compared.
using LossConfig = std::variant<CrossEntropyConfig>;

}  // namespace capstan
