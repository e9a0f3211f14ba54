// Attention's element-wise work on tiles of logits, a register of queries (columns) at a time: softmax with a running
// maximum, pointwise kernels, their gradients, and transposed copies. tests/nn/systems/quadratic/test_op.cpp.
#include "nn/systems/quadratic/kernels/tile.hpp"

#include <algorithm>
#include <limits>

#include "core/kernels/simd_sums.hpp"
#include "nn/systems/quadratic/kernels/attention_functions.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

using simd::Batch;
using simd::lanes;

/// 2^x for x <= 0. In float, x below -125 counts as -125: adding to the bits of the exponent needs a normal result.
#ifdef CAPSTAN_DOUBLE
inline Batch exp2_of_negative(const Batch& x) { return xsimd::exp2(x); }
#else
inline Batch exp2_of_negative(const Batch& x) {
  using Bits = xsimd::batch<int32_t>;
  // Adding 12582912 = 1.5 * 2^23 rounds x to a whole number, which is then in the lowest bits of `shifted`.
  const Batch limited = xsimd::max(Batch(-125.0f), x), shifted = limited + Batch(12582912.0f);
  const Batch r = limited - (shifted - Batch(12582912.0f));
  // Minimax fit of 2^r on [-1/2, 1/2] that is 1 at 0; relative error 2.6e-9.
  constexpr float coefficients[] = {1.34066434e-3f, 9.61769279e-3f, 5.55031039e-2f, 2.40226522e-1f, 6.93147242e-1f, 1};
  Batch p(1.55946778e-4f);
  for (const float coefficient : coefficients) p = simd::fma(p, r, Batch(coefficient));
  return xsimd::bitwise_cast<Batch>(xsimd::bitwise_cast<Bits>(p) + (xsimd::bitwise_cast<Bits>(shifted) << 23));
}
#endif

/// One register of columns (queries), from column `first` on. All these queries see the keys of rows [0, seen_by_all);
/// some of them see those of rows [seen_by_all, seen_by_some).
struct Column {
  const AttentionTile& tile;
  int64_t first, seen_by_all, seen_by_some;

  real* at(real* rows, int64_t r) const { return rows + r * tile.stride + first; }
  Batch logit(int64_t r) const { return Batch::load_unaligned(at(tile.logits, r)); }
  Batch biased_logit(int64_t r) const { return logit(r) + Batch::load_unaligned(tile.bias + first - r); }
  /// The mask of the column's queries that see key r.
  auto visible(int64_t r) const { return lane_numbers() >= Batch(static_cast<real>(r + tile.diagonal - first)); }

 private:
  static Batch lane_numbers() {
    alignas(64) real number[lanes];
    for (int64_t lane = 0; lane < lanes; ++lane) number[lane] = static_cast<real>(lane);
    return Batch::load_aligned(number);
  }
};

template <class Body>
void for_each_column(const AttentionTile& tile, const Body& body) {
  for (int64_t first = 0; first < tile.columns; first += lanes) {
    const int64_t seen_by_all = std::clamp<int64_t>(first - tile.diagonal + 1, 0, tile.keys);
    const int64_t seen_by_some = std::clamp<int64_t>(first + lanes - tile.diagonal, 0, tile.keys);
    body(Column{tile, first, seen_by_all, seen_by_some});
  }
}

/// Calls whole(row) for the rows (keys) that all queries of the column see, then masked(row, mask of the queries that
/// see it) for the rows that only some queries see.
template <class Whole, class Masked>
void for_each_row(const Column& column, const Whole& whole, const Masked& masked) {
  for (int64_t r = 0; r < column.seen_by_all; ++r) whole(r);
  for (int64_t r = column.seen_by_all; r < column.seen_by_some; ++r) masked(r, column.visible(r));
}

/// The largest of `maximum` and the column's logits, which get their bias on the way.
Batch largest_logit(const Column& column, Batch maximum) {
  const bool biased = column.tile.bias != nullptr;
  const auto finished = [&](int64_t r) {
    if (!biased) return column.logit(r);
    const Batch logit = column.biased_logit(r);
    logit.store_unaligned(column.at(column.tile.logits, r));
    return logit;
  };
  constexpr int together = 4;  // independent chains of max(), so that none waits for the result before it
  Batch partial[together] = {maximum, maximum, maximum, maximum};
  int64_t r = 0;
  for (; r + together <= column.seen_by_all; r += together)
    for (int i = 0; i < together; ++i) partial[i] = xsimd::max(partial[i], finished(r + i));
  for (; r < column.seen_by_all; ++r) partial[0] = xsimd::max(partial[0], finished(r));
  for (; r < column.seen_by_some; ++r)
    partial[1] = xsimd::select(column.visible(r), xsimd::max(partial[1], finished(r)), partial[1]);
  return xsimd::max(xsimd::max(partial[0], partial[1]), xsimd::max(partial[2], partial[3]));
}

/// logits -> 2^(logit - running maximum). Where the maximum rises, `decay` is the factor for sums of earlier tiles.
void softmax_weights(const AttentionTile& tile, const AttentionRunning& running) {
  for_each_column(tile, [&](const Column& column) {
    const Batch before = Batch::load_unaligned(running.maximum + column.first);
    const Batch maximum = largest_logit(column, before);
    Batch total(0);
    const auto weigh = [&](int64_t r, const Batch& weight) {
      total += weight;
      weight.store_unaligned(column.at(tile.logits, r));
    };
    for_each_row(
        column, [&](int64_t r) { weigh(r, exp2_of_negative(column.logit(r) - maximum)); },
        [&](int64_t r, const auto& visible) {
          weigh(r, xsimd::select(visible, exp2_of_negative(column.logit(r) - maximum), Batch(0)));
        });
    for (int64_t r = column.seen_by_some; r < tile.keys; ++r) Batch(0).store_unaligned(column.at(tile.logits, r));
    const Batch decay = exp2_of_negative(before - maximum);
    total += decay * Batch::load_unaligned(running.total + column.first);
    decay.store_unaligned(running.decay + column.first);
    total.store_unaligned(running.total + column.first);
    maximum.store_unaligned(running.maximum + column.first);
  });
}

/// Multiplies each column of (count, columns) elements by its factor. Factors are all 1 while no maximum rises.
void scale_columns(real* rows, int64_t stride, int64_t count, int64_t columns, const real* factor) {
  const bool needed = std::any_of(factor, factor + columns, [](real value) { return value != 1; });
  if (!needed) return;
  for (int64_t row = 0; row < count; ++row)
    for (int64_t c = 0; c < columns; c += lanes)
      (Batch::load_unaligned(rows + row * stride + c) * Batch::load_unaligned(factor + c))
          .store_unaligned(rows + row * stride + c);
}

/// Calls body(column, row, logit, keep) for every row (key) that a query of the column sees. keep(value) sets the lanes
/// of queries that do not see the key to 0.
template <class Body>
void for_each_logit(const AttentionTile& tile, const Body& body) {
  const auto rows = [&](const Column& column, const auto& logit) {
    for_each_row(
        column, [&](int64_t r) { body(column, r, logit(r), [](const Batch& value) { return value; }); },
        [&](int64_t r, const auto& visible) {
          body(column, r, logit(r), [&](const Batch& value) { return xsimd::select(visible, value, Batch(0)); });
        });
  };
  for_each_column(tile, [&](const Column& column) {
    if (tile.bias != nullptr)
      rows(column, [&](int64_t r) { return column.biased_logit(r); });
    else
      rows(column, [&](int64_t r) { return column.logit(r); });
  });
}

/// Writes 0 into the rows (keys) that no query of a column sees: for_each_logit() does not visit them.
void clear_unseen(const AttentionTile& tile, real* rows) {
  for_each_column(tile, [&](const Column& column) {
    for (int64_t r = column.seen_by_some; r < tile.keys; ++r) Batch(0).store_unaligned(column.at(rows, r));
  });
}

/// logits -> Function(logit): a weight depends on its own logit alone, without a normaliser.
template <class Function>
void pointwise_weights(const AttentionTile& tile) {
  for_each_logit(tile, [&](const Column& column, int64_t r, const Batch& logit, const auto& keep) {
    keep(Function::value(logit)).store_unaligned(column.at(tile.logits, r));
  });
  clear_unseen(tile, tile.logits);
}

template <class Function>
void pointwise_weights_backward(const AttentionTile& tile, real* dweights) {
  for_each_logit(tile, [&](const Column& column, int64_t r, const Batch& logit, const auto& keep) {
    const ValueAndSlope f = Function::both(logit);
    real* const gradient = column.at(dweights, r);
    keep(f.value).store_unaligned(column.at(tile.logits, r));
    keep(f.slope * Batch::load_unaligned(gradient)).store_unaligned(gradient);
  });
  clear_unseen(tile, tile.logits);
  clear_unseen(tile, dweights);
}

/// attention_tile_weights_backward() of the softmax. `maximum` is that of a query's whole row of keys, so no running
/// maximum is needed.
void softmax_weights_backward(const AttentionTile& tile, real* dweights, const real* maximum, const real* shift) {
  for_each_logit(tile, [&](const Column& column, int64_t r, const Batch& logit, const auto& keep) {
    const Batch weight = keep(exp2_of_negative(logit - Batch::load_unaligned(maximum + column.first)));
    real* const gradient = column.at(dweights, r);
    weight.store_unaligned(column.at(tile.logits, r));
    keep(weight * (Batch::load_unaligned(gradient) - Batch::load_unaligned(shift + column.first)))
        .store_unaligned(gradient);
  });
  clear_unseen(tile, tile.logits);
  clear_unseen(tile, dweights);
}

/// Eight elements, for transposing in blocks of 8 x 8. EightAnywhere is for memory, which has an element's alignment
/// only; variables are of type Eight, because clang expects them at the vector's alignment, whatever their type says.
typedef real Eight __attribute__((vector_size(8 * sizeof(real))));
typedef real EightAnywhere __attribute__((vector_size(8 * sizeof(real)), aligned(sizeof(real)), may_alias));

/// out[k] = column k of eight rows of `in`, `stride` apart. Three rounds swap single elements, then pairs, then fours.
inline void transpose_block(const real* in, int64_t stride, Eight (&out)[8]) {
  Eight ones[8], twos[8];
  for (int64_t i = 0; i < 8; i += 2) {
    const Eight a = *reinterpret_cast<const EightAnywhere*>(in + i * stride),
                b = *reinterpret_cast<const EightAnywhere*>(in + (i + 1) * stride);
    ones[i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
    ones[i + 1] = __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int64_t i : {0, 1, 4, 5}) {
    const int64_t to = i / 4 * 4 + i % 4 * 2;
    twos[to] = __builtin_shufflevector(ones[i], ones[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    twos[to + 1] = __builtin_shufflevector(ones[i], ones[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (int64_t i = 0; i < 4; ++i) {
    out[i] = __builtin_shufflevector(twos[i], twos[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    out[i + 4] = __builtin_shufflevector(twos[i], twos[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

}  // namespace

int64_t attention_column_granule() { return lanes; }

void attention_clear(const AttentionRunning& running, int64_t columns) {
  std::fill_n(running.maximum, columns, std::numeric_limits<real>::lowest());
  std::fill_n(running.total, columns, real{0});
}

void attention_tile_weights(AttentionKernel kernel, const AttentionTile& tile, const AttentionRunning& running,
                            real* sums, int64_t width) {
  switch (kernel) {
    case AttentionKernel::softmax:
      softmax_weights(tile, running);
      if (sums != nullptr) scale_columns(sums, tile.stride, width, tile.columns, running.decay);
      return;
    case AttentionKernel::squared_relu:
      return pointwise_weights<SquaredRelu>(tile);
    case AttentionKernel::laplace:
      return pointwise_weights<Laplace>(tile);
  }
}

void attention_tile_weights_backward(AttentionKernel kernel, const AttentionTile& tile, real* dweights,
                                     const real* maximum, const real* shift) {
  switch (kernel) {
    case AttentionKernel::softmax:
      return softmax_weights_backward(tile, dweights, maximum, shift);
    case AttentionKernel::squared_relu:
      return pointwise_weights_backward<SquaredRelu>(tile, dweights);
    case AttentionKernel::laplace:
      return pointwise_weights_backward<Laplace>(tile, dweights);
  }
}

void attention_add_diagonals(const AttentionTile& tile, const real* dlogits, real* dbias) {
  for (int64_t r = 0; r < tile.keys; ++r)
    for (int64_t c = 0; c < tile.columns; c += lanes)
      (Batch::load_unaligned(dbias + c - r) + Batch::load_unaligned(dlogits + r * tile.stride + c))
          .store_unaligned(dbias + c - r);
}

void attention_pack(const real* rows, int64_t stride, int64_t count, int64_t width, const real* factor, real* out) {
  for (int64_t i = 0; i < count; ++i) {
    const Batch scale(factor[i]);
    simd::sweep(width, [&](auto at) { at.store(out + i * width, scale * at.load(rows + i * stride)); });
  }
}

void attention_pack_transposed(const real* rows, int64_t stride, int64_t count, int64_t width, const real* factor,
                               int64_t columns, real* out, int64_t out_stride) {
  const int64_t block = 8, even_width = width / block * block, even_count = count / block * block;
  for (int64_t i = 0; i < even_count; i += block) {
    const Eight scale = *reinterpret_cast<const EightAnywhere*>(factor + i);
    for (int64_t z = 0; z < even_width; z += block) {
      Eight transposed[block];
      transpose_block(rows + i * stride + z, stride, transposed);
      for (int64_t k = 0; k < block; ++k)
        *reinterpret_cast<EightAnywhere*>(out + (z + k) * out_stride + i) = scale * transposed[k];
    }
  }
  for (int64_t z = 0; z < width; ++z) {
    for (int64_t i = z < even_width ? even_count : 0; i < count; ++i)
      out[z * out_stride + i] = factor[i] * rows[i * stride + z];
    std::fill(out + z * out_stride + count, out + z * out_stride + columns, real{0});
  }
}

void attention_unpack_transposed(const real* in, int64_t stride, int64_t count, int64_t width, const real* factor,
                                 real* out, int64_t out_stride) {
  const int64_t block = 8, even_width = width / block * block, even_count = count / block * block;
  for (int64_t i = 0; i < even_count; i += block) {
    for (int64_t z = 0; z < even_width; z += block) {
      Eight transposed[block];
      transpose_block(in + z * stride + i, stride, transposed);
      for (int64_t k = 0; k < block; ++k)
        *reinterpret_cast<EightAnywhere*>(out + (i + k) * out_stride + z) = factor[i + k] * transposed[k];
    }
  }
  for (int64_t i = 0; i < count; ++i)
    for (int64_t z = i < even_count ? even_width : 0; z < width; ++z)
      out[i * out_stride + z] = factor[i] * in[z * stride + i];
}

void attention_row_products(const real* a, int64_t a_stride, const real* b, int64_t b_stride, int64_t count,
                            int64_t width, const real* factor, real* out) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = factor[i] * simd::dot(a + i * a_stride, b + i * b_stride, width);
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
