// All products go through split(): the products of a batch, each cut into pieces, are units that threads take, and a
// library computes a unit. tests/core/products/test_gemm.cpp compares with three loops, on one thread and on two.
#include "core/products/gemm.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"
#include "core/machine/profile.hpp"
#include "core/products/gemm_backend.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// A batch of products: their number, and the distance in elements between operands of one product and the next.
struct Batched {
  int64_t count, a_step, b_step, c_step;
};

/// The part of an operand from row `first` on (if transposed, from column `first` of what is stored).
template <class T>
MatrixOf<T> rows_from(const MatrixOf<T>& a, int64_t first) {
  return {a.data + first * (a.transposed() ? 1 : a.stride), a.stride, a.transpose};
}
template <class T>
MatrixOf<T> columns_from(const MatrixOf<T>& b, int64_t first) {
  return {b.data + first * (b.transposed() ? b.stride : 1), b.stride, b.transpose};
}

/// Below this many multiply-adds a second thread costs more than it brings.
constexpr int64_t serial_work = 64 * 64 * 64;
/// Pieces start at multiples of this, so that none gets a ragged edge in the middle of the matrix.
constexpr int64_t piece_granule = 16;
/// A piece packs its operands for itself, which costs 1 to 2 % of the product at this size and more below it.
constexpr int64_t piece_size = 1024;

/// The pieces of C along its longer side, a function of the shape: the libraries add in an order that depends on it.
struct Pieces {
  bool rows;
  int64_t length, count;
  int64_t begin(int64_t piece) const {
    const int64_t granules = (length + piece_granule - 1) / piece_granule;
    return std::min(granules * piece / count * piece_granule, length);
  }
};

/// Cuts C into at least two pieces, so that threads can share it, unless the batch has products enough to share out.
Pieces cut(int64_t batch, int64_t m, int64_t n, int64_t k) {
  constexpr int64_t enough = 8;
  const int64_t length = std::max(m, n);
  const bool undivided = in_parallel() || batch >= enough || length <= piece_granule || m * n * k < serial_work;
  return {m >= n, length, undivided ? 1 : std::max<int64_t>(2, length / piece_size)};
}

template <class T>
void scale_only(int64_t m, int64_t n, T* c, int64_t c_stride, T beta) {
  for (int64_t row = 0; row < m; ++row)
    for (int64_t column = 0; column < n; ++column)
      c[row * c_stride + column] = beta == 0 ? 0 : beta * c[row * c_stride + column];
}

/// Calls one(rows, columns, A's part, B's part, C's part) for a piece of C.
template <class Factor, class T, class One>
void run_piece(const Pieces& pieces, int64_t piece, int64_t m, int64_t n, const MatrixOf<Factor>& a,
               const MatrixOf<Factor>& b, T* c, int64_t c_stride, const One& one) {
  const int64_t first = pieces.begin(piece), size = pieces.begin(piece + 1) - first;
  if (pieces.rows)
    one(size, n, rows_from(a, first), b, c + first * c_stride);
  else
    one(m, size, a, columns_from(b, first), c + first);
}

/// Computes all products of a batch: their pieces are shared out to the threads.
template <class Factor, class T, class One>
void split(const Batched& batch, int64_t m, int64_t n, int64_t k, const MatrixOf<Factor>& a, const MatrixOf<Factor>& b,
           T* c, int64_t c_stride, T beta, const One& one) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (int64_t i = 0; i < batch.count; ++i) scale_only(m, n, c + i * batch.c_step, c_stride, beta);
    return;
  }
  const ProductSpan span(batch.count * m, n, k);
  const Pieces pieces = cut(batch.count, m, n, k);
  const int64_t units = batch.count * pieces.count, grain = batch.count * m * n * k < serial_work ? units : 1;
  parallel_each(units, grain, [&](int64_t unit) {
    stop_point();
    const int64_t i = unit / pieces.count;
    run_piece(pieces, unit % pieces.count, m, n, MatrixOf<Factor>{a.data + i * batch.a_step, a.stride, a.transpose},
              MatrixOf<Factor>{b.data + i * batch.b_step, b.stride, b.transpose}, c + i * batch.c_step, c_stride, one);
  });
}

}  // namespace

void gemm(int64_t m, int64_t n, int64_t k, const MatrixView& a, const MatrixView& b, real* c, int64_t c_stride,
          real alpha, real beta) {
  gemm_batched(1, m, n, k, a, 0, b, 0, c, c_stride, 0, alpha, beta);
}

void gemm(int64_t m, int64_t n, int64_t k, const Bf16View& a, const Bf16View& b, float* c, int64_t c_stride,
          float beta) {
  check(beta == 0 || beta == 1, "gemm: bf16 products need beta 0 or 1, got {}", beta);
  split({1, 0, 0, 0}, m, n, k, a, b, c, c_stride, beta,
        [=](int64_t rows, int64_t columns, const Bf16View& left, const Bf16View& right, float* out) {
          multiply(Bf16Product{rows, columns, k, left, right, out, c_stride, 1, beta});
        });
}

void gemm_batched(int64_t batch, int64_t m, int64_t n, int64_t k, const MatrixView& a, int64_t a_step,
                  const MatrixView& b, int64_t b_step, real* c, int64_t c_stride, int64_t c_step, real alpha,
                  real beta) {
  split({batch, a_step, b_step, c_step}, m, n, k, a, b, c, c_stride, beta,
        [=](int64_t rows, int64_t columns, const MatrixView& left, const MatrixView& right, real* out) {
          multiply(Product<real>{rows, columns, k, left, right, out, c_stride, alpha, beta});
        });
}

}  // namespace capstan::CAPSTAN_PRECISION
