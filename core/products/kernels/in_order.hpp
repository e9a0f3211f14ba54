// Products of floats that have the same bits on every CPU (train.kernels: portable).
// tests/core/products/float_in_order.cpp computes each element's chain, tests/run/test_portable_bits.cpp whole
// trainings.
#pragma once

#include "core/products/kernels/product.hpp"

namespace capstan {

/// The product on the calling thread. An element of C is a chain of fused multiply-adds in the order of k, in blocks
/// of 256, which are added up: no width of registers, size of caches or cut of C into pieces changes its bits.
void multiply_in_order(const Product<float>& p);

/// Have the kernels in use instructions for fused multiply-adds? Without these, in-order products would have other
/// bits.
bool kernels_fuse();

}  // namespace capstan
