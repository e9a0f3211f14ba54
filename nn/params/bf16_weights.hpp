// The bf16 copies of parameters that training in bf16 multiplies with: tests/nn/params/test_bf16_weights.cpp.
#pragma once

#include "nn/params/param_store.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// While it exists, every parameter of the store but tables that are updated by rows has a bf16 copy of the value it
/// had when this was made. Products of affine maps with such a weight, forward and in pullbacks, are computed in bf16
/// (core/fused/linear_products.hpp). Everything else stays float, including parameters and their gradients. Make one
/// for each training step, around the forward passes and their pullbacks, and destroy it before the weights change.
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
