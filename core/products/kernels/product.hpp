// Product: the operands, sizes and factors of a matrix product, which all functions of core/products take.
#pragma once

#include <cstdint>

namespace capstan {

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

}  // namespace capstan
