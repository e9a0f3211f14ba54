// The point-wise functions that configurations and ops know by name.
#pragma once

#include <vector>

#include "core/config/schema.hpp"

namespace capstan {

/// none x; relu max(x, 0); squared_relu max(x, 0)^2; gelu x Phi(x) with the exact normal distribution function;
/// silu x sigmoid(x); sigmoid 1 / (1 + e^-x); tanh.
enum class Activation { none, relu, squared_relu, gelu, silu, sigmoid, tanh };

inline std::vector<EnumName<Activation>> enum_names(Activation) {
  return {{Activation::none, "none"}, {Activation::relu, "relu"}, {Activation::squared_relu, "squared_relu"},
          {Activation::gelu, "gelu"}, {Activation::silu, "silu"}, {Activation::sigmoid, "sigmoid"},
          {Activation::tanh, "tanh"}};
}

}  // namespace capstan
