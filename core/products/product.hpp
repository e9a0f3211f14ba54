// The arguments of one matrix product.
#pragma once

#include <cstdint>

#include "core/base/bf16.hpp"

namespace capstan {

/// C (m, n) = alpha * op(A) op(B) + beta * C, row-major, inner size k; with beta = 0 C is not read. m, n, k > 0.
template <class T>
struct Product {
  int64_t m, n, k;
  const T* a;
  int64_t a_stride;
  bool a_transposed;
  const T* b;
  int64_t b_stride;
  bool b_transposed;
  T* c;
  int64_t c_stride;
  T alpha, beta;
};

/// C (m, n) = op(A) op(B), or C + op(A) op(B), in floats: products of two bf16 values are exact, sums are rounded.
struct Bf16Product {
  int64_t m, n, k;
  const Bf16* a;
  int64_t a_stride;
  bool a_transposed;
  const Bf16* b;
  int64_t b_stride;
  bool b_transposed;
  float* c;
  int64_t c_stride;
  bool accumulate;
};

}  // namespace capstan
