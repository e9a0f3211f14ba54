// Training in bf16: the parameters' copies that make products bf16.
#pragma once

#include "nn/params/param_store.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// While it lives, every parameter of the store has a bf16 copy of its value at the time, and all products of affine
/// maps with such a weight, forward and in pullbacks, are done in bf16 (core/ops/linear_products.hpp): make one for each
/// training step, around the forward passes and their pullbacks, and let it go before the weights change. Everything
/// else, the parameters and their gradients included, stays float.
class Bf16Weights {
 public:
  /// The store must be finalized. Throws std::logic_error otherwise, or where `real` is double, or where copies exist.
  explicit Bf16Weights(const ParamStore& params);
  ~Bf16Weights();
  Bf16Weights(const Bf16Weights&) = delete;
  Bf16Weights& operator=(const Bf16Weights&) = delete;

 private:
  const ParamStore& params_;
};

}  // namespace capstan::CAPSTAN_PRECISION
