// What a matrix product is given, and products of floats that have the same bits on every CPU (train.kernels:
// portable). tests/core/products/float_in_order.cpp computes each element's chain, tests/run/test_portable_bits.cpp
// whole trainings.
#pragma once

#include <cstdint>

namespace capstan {

// The arguments of one matrix product.

enum class Transpose { no, yes };

/// A row-major matrix operand: `data` with `stride` elements from one stored row to the next, taken transposed or not.
template <class T>
struct MatrixOf {
  const T* data;
  int64_t stride;
  Transpose transpose = Transpose::no;
  bool transposed() const { return transpose == Transpose::yes; }
};

/// C (m, n) = alpha * op(A) op(B) + beta * C, row-major, inner size k; with beta = 0 C is not read. m, n, k > 0.
template <class T, class Result = T>
struct Product {
  int64_t m, n, k;
  MatrixOf<T> a, b;
  Result* c;
  int64_t c_stride;
  Result alpha, beta;
};

/// The product on the calling thread. An element of C is a chain of fused additions in the order of k, in blocks of
/// 256, which are added up: no width of registers, size of caches or cut of C into pieces changes its bits.
void multiply_in_order(const Product<float>& p);

/// Have these kernels instructions for fused products? Without them bits would differ.
bool kernels_fuse();

}  // namespace capstan
