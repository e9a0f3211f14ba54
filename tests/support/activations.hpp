// The activations as compositions of primitives.
#pragma once

#include "core/activation.hpp"
#include "core/ops_math.hpp"

CAPSTAN_BEGIN
namespace testing {

inline Var apply(Activation activation, const Var& x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return relu(x);
    case Activation::squared_relu:
      return squared_relu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::silu:
      return silu(x);
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::tanh:
      return tanh(x);
  }
  return x;
}

}  // namespace testing
CAPSTAN_END
