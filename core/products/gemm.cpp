#include "core/products/gemm.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/machine/profile.hpp"
#include "core/products/gemm_backend.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// The operand from row (or, transposed, column) `first` of its outer side on.
template <class T>
MatrixOf<T> rows_from(const MatrixOf<T>& a, int64_t first) {
  return {a.data + first * (a.transpose == Transpose::yes ? 1 : a.stride), a.stride, a.transpose};
}
template <class T>
MatrixOf<T> columns_from(const MatrixOf<T>& b, int64_t first) {
  return {b.data + first * (b.transpose == Transpose::yes ? b.stride : 1), b.stride, b.transpose};
}

/// Below this many multiply-adds a second thread costs more than it brings.
constexpr int64_t serial_work = 64 * 64 * 64;
/// Pieces start at multiples of this, so that no thread gets a ragged edge in the middle of the matrix.
constexpr int64_t piece_granule = 16;

template <class T>
void scale_only(int64_t m, int64_t n, T* c, int64_t c_stride, T beta) {
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n; ++column)
      c[row * c_stride + column] = beta == 0 ? 0 : beta * c[row * c_stride + column];
}

/// one(rows, columns, A's part, B's part, C's part) for pieces of C along its longer side, one per thread.
template <class Factor, class T, class One>
void split(int64_t m, int64_t n, int64_t k, const MatrixOf<Factor>& a, const MatrixOf<Factor>& b, T* c,
           int64_t c_stride, T beta, const One& one) {
  if (m == 0 || n == 0) return;
  if (k == 0) return scale_only(m, n, c, c_stride, beta);
  const ProductSpan span(m, n, k);
  const bool split_rows = m >= n;
  const int64_t granules = ((split_rows ? m : n) + piece_granule - 1) / piece_granule;
  const int64_t grain = m * n * k < serial_work ? granules : 1;
  parallel_for(granules, grain, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * piece_granule;
    if (split_rows)
      one(std::min(end * piece_granule, m) - first, n, rows_from(a, first), b, c + first * c_stride);
    else
      one(m, std::min(end * piece_granule, n) - first, a, columns_from(b, first), c + first);
  });
}

constexpr bool is_transposed(Transpose transpose) { return transpose == Transpose::yes; }

}  // namespace

void gemm(int64_t m, int64_t n, int64_t k, const MatrixView& a, const MatrixView& b, real* c, int64_t c_stride,
          real alpha, real beta) {
  split(m, n, k, a, b, c, c_stride, beta,
        [=](int64_t rows, int64_t columns, const MatrixView& left, const MatrixView& right, real* out) {
          multiply(Product<real>{rows, columns, k, left.data, left.stride, is_transposed(left.transpose), right.data,
                                 right.stride, is_transposed(right.transpose), out, c_stride, alpha, beta});
        });
}

void gemm(int64_t m, int64_t n, int64_t k, const Bf16View& a, const Bf16View& b, float* c, int64_t c_stride,
          float beta) {
  check(beta == 0 || beta == 1, "gemm: bf16 products need beta 0 or 1, got {}", beta);
  split(m, n, k, a, b, c, c_stride, beta,
        [=](int64_t rows, int64_t columns, const Bf16View& left, const Bf16View& right, float* out) {
          multiply(Bf16Product{rows, columns, k, left.data, left.stride, is_transposed(left.transpose), right.data,
                               right.stride, is_transposed(right.transpose), out, c_stride, beta == 1});
        });
}

void gemm_batched(int64_t batch, int64_t m, int64_t n, int64_t k, const MatrixView& a, int64_t a_step,
                  const MatrixView& b, int64_t b_step, real* c, int64_t c_stride, int64_t c_step, real alpha,
                  real beta) {
  const auto one = [&](int64_t i) {
    gemm(m, n, k, {a.data + i * a_step, a.stride, a.transpose}, {b.data + i * b_step, b.stride, b.transpose},
         c + i * c_step, c_stride, alpha, beta);
  };
  const ProductSpan span(0, 0, 0);  // the products count themselves
  if (batch < team_size()) {
    for (int64_t i = 0; i < batch; ++i) one(i);
  } else {
    parallel_for(batch, m * n * k * batch < serial_work ? batch : 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) one(i);
    });
  }
}

}  // namespace capstan::CAPSTAN_PRECISION
