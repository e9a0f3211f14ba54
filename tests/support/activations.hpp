// The activations as compositions of primitives.
#pragma once

#include "core/kernels/activation.hpp"
#include "core/ops/ops.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

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

}  // namespace capstan::CAPSTAN_PRECISION::testing
