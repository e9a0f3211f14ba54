// oneDNN's matrix products of bf16 matrices, called by core/products/gemm_backend.
#pragma once

#include "core/base/bf16.hpp"
#include "core/products/kernels/product.hpp"

namespace capstan {

/// Does oneDNN find instructions for products of bf16 in this CPU? False in a build without oneDNN.
bool onednn_uses_bf16_instructions();

/// Computes the product on the calling thread, which must be inside a parallel region or have OpenMP set to one thread.
/// False, with nothing done, where oneDNN has no kernel for it, which depends on the CPU, the shape and the strides
/// only. Keeps a limited number of prepared products per thread.
bool onednn_multiply(const Product<Bf16, float>& product);

}  // namespace capstan
