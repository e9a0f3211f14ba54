// multiply_in_order() by the blocking of Goto and van de Geijn 2008 (Anatomy of high-performance matrix
// multiplication): blocks of A and B are packed into panels in the order in which they are read, and a tile of C is in
// registers while a block of k is added. Of all sizes below, only `depth` changes results.
// tests/core/products/float_in_order.cpp.
#include "core/products/kernels/in_order.hpp"

#include <algorithm>

#include "core/kernels/simd_functions.hpp"
#include "core/machine/pool.hpp"

namespace capstan {
namespace {

using simd::Floats;

constexpr int64_t lanes = static_cast<int64_t>(Floats::size);
constexpr int64_t depth = 256;  // of a block of k: part of what a result is
// What follows changes the speed alone. A tile of C is in registers, of which a CPU has 32 or 16.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int tile_rows = 12;
#else
constexpr int tile_rows = 6;
#endif
constexpr int64_t tile_columns = 2 * lanes;
constexpr int64_t block_rows = 8 * tile_rows;  // of A, packed: stays in the second-level cache
constexpr int64_t block_columns = 512;         // of B, packed

/// Steps from an element of a factor to the next row and column.
struct Steps {
  int64_t row, column;
};
Steps steps(const MatrixOf<float>& matrix) {
  return matrix.transposed() ? Steps{1, matrix.stride} : Steps{matrix.stride, 1};
}

/// `count` rows (or columns) of a factor, `across` apart, as panels of `size`: all elements of a panel at one k side by
/// side, then those at the next, `along` further. The last panel is filled up with 0.
void pack(const float* from, int64_t across, int64_t along, int64_t count, int64_t size, int64_t length, float* to) {
  for (int64_t first = 0; first < count; first += size) {
    const int64_t width = std::min(size, count - first);
    for (int64_t k = 0; k < length; ++k, to += size) {
      const float* const row = from + first * across + k * along;
      for (int64_t lane = 0; lane < width; ++lane) to[lane] = row[lane * across];
      std::fill(to + width, to + size, 0.0F);
    }
  }
}

/// A block's place in C, and the factors by which its sums are stored: c = alpha * sum + beta * c.
struct Target {
  float* c;
  int64_t stride, columns;  // columns that exist
  float alpha, beta;
};

/// Stores one register of sums into a row of C, of which `columns` lanes exist.
void join(const Target& to, float* c, int64_t columns, const Floats& sum) {
  alignas(64) float part[lanes] = {};
  const int64_t count = std::clamp<int64_t>(columns, 0, lanes);
  if (to.beta != 0) std::copy_n(c, count, part);
  const Floats value = Floats(to.alpha) * sum, before = Floats::load_aligned(part);
  const Floats joined = to.beta == 0 ? value : to.beta == 1 ? before + value : Floats(to.beta) * before + value;
  joined.store_aligned(part);
  std::copy_n(part, count, c);
}

/// Computes `Rows` rows of a tile. All loops over the sums are unrolled: otherwise GCC keeps the sums in memory.
template <int Rows>
void multiply_tile(const float* a, const float* b, int64_t length, const Target& to) {
  Floats left[Rows], right[Rows];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) left[i] = right[i] = Floats(0.0F);
  for (int64_t k = 0; k < length; ++k) {
    const Floats first = Floats::load_aligned(b + k * tile_columns),
                 second = Floats::load_aligned(b + k * tile_columns + lanes);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const Floats value(a[k * tile_rows + i]);
      left[i] = simd::fma(value, first, left[i]);
      right[i] = simd::fma(value, second, right[i]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    join(to, to.c + i * to.stride, to.columns, left[i]);
    join(to, to.c + i * to.stride + lanes, to.columns - lanes, right[i]);
  }
}

using TileFunction = void (*)(const float*, const float*, int64_t, const Target&);
template <int... Rows>
TileFunction tile_function(int64_t rows, std::integer_sequence<int, Rows...>) {
  static constexpr TileFunction functions[] = {multiply_tile<Rows + 1>...};
  return functions[rows - 1];
}

/// Multiplies a packed block of A by a packed block of B, tile by tile.
void multiply_blocks(const float* a, int64_t rows, const float* b, int64_t length, const Target& to) {
  for (int64_t column = 0; column < to.columns; column += tile_columns) {
    const int64_t width = std::min(tile_columns, to.columns - column);
    for (int64_t row = 0; row < rows; row += tile_rows) {
      const int64_t height = std::min<int64_t>(tile_rows, rows - row);
      tile_function(height, std::make_integer_sequence<int, tile_rows>())(
          a + row * length, b + column * length, length,
          {to.c + row * to.stride + column, to.stride, width, to.alpha, to.beta});
    }
  }
}

}  // namespace

void multiply_in_order(const Product<float>& p) {
  const Steps of_a = steps(p.a), of_b = steps(p.b);
  const auto whole_tiles = [](int64_t size, int64_t tile) { return (size + tile - 1) / tile * tile; };
  const int64_t max_depth = std::min(depth, p.k);
  const int64_t columns_at_once = std::min(block_columns, whole_tiles(p.n, tile_columns));
  const int64_t rows_at_once = std::min(block_rows, whole_tiles(p.m, tile_rows));
  const Buffer memory(static_cast<size_t>((columns_at_once + rows_at_once) * max_depth) * sizeof(float));
  float* const packed_b = static_cast<float*>(memory.data());
  float* const packed_a = packed_b + columns_at_once * max_depth;
  for (int64_t column = 0; column < p.n; column += block_columns) {
    const int64_t columns = std::min(block_columns, p.n - column);
    for (int64_t k = 0; k < p.k; k += depth) {
      const int64_t length = std::min(depth, p.k - k);
      pack(p.b.data + column * of_b.column + k * of_b.row, of_b.column, of_b.row, columns, tile_columns, length,
           packed_b);
      for (int64_t row = 0; row < p.m; row += block_rows) {
        const int64_t rows = std::min(block_rows, p.m - row);
        pack(p.a.data + row * of_a.row + k * of_a.column, of_a.row, of_a.column, rows, tile_rows, length, packed_a);
        multiply_blocks(packed_a, rows, packed_b, length,
                        {p.c + row * p.c_stride + column, p.c_stride, columns, p.alpha, k == 0 ? p.beta : 1});
      }
    }
  }
}

bool kernels_fuse() {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return true;
#else
  return false;
#endif
}

}  // namespace capstan
