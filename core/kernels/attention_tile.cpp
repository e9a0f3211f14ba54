#include "core/kernels/attention_tile.hpp"

#include <algorithm>
#include <limits>

#include "core/kernels/attention_functions.hpp"

CAPSTAN_BEGIN
namespace kernels {
namespace {

using simd::Batch;
using simd::lanes;

/// 2^x for x <= 0; what is below the smallest normal number becomes about that number.
#ifdef CAPSTAN_DOUBLE
Batch exp2_of_negative(const Batch& x) { return xsimd::exp2(x); }
#else
inline Batch exp2_of_negative(const Batch& x) {
  using Bits = xsimd::batch<int32_t>;
  // Adding 1.5 * 2^23 rounds to a whole number and leaves that number in the lowest bits.
  const Batch limited = xsimd::max(Batch(-125.0f), x), shifted = limited + Batch(12582912.0f);
  const Batch r = limited - (shifted - Batch(12582912.0f));
  // Minimax fit of 2^r on [-1/2, 1/2] that is 1 at 0; relative error 2.6e-9.
  constexpr float coefficients[] = {1.34066434e-3f, 9.61769279e-3f, 5.55031039e-2f, 2.40226522e-1f, 6.93147242e-1f, 1};
  Batch p(1.55946778e-4f);
  for (const float coefficient : coefficients) p = xsimd::fma(p, r, Batch(coefficient));
  return xsimd::bitwise_cast<Batch>(xsimd::bitwise_cast<Bits>(p) + (xsimd::bitwise_cast<Bits>(shifted) << 23));
}
#endif

/// One register of columns and the rows that all, or some, of its queries see.
struct Column {
  const AttentionTile& tile;
  int64_t first, all, some;

  real* at(real* rows, int64_t r) const { return rows + r * tile.stride + first; }
  Batch logit(int64_t r) const { return Batch::load_unaligned(at(tile.logits, r)); }
  Batch biased_logit(int64_t r) const { return logit(r) + Batch::load_unaligned(tile.bias + first - r); }
  /// Which queries see key r?
  auto visible(int64_t r) const { return numbers() >= Batch(static_cast<real>(r + tile.diagonal - first)); }

 private:
  static Batch numbers() {
    alignas(64) real number[lanes];
    for (int64_t lane = 0; lane < lanes; ++lane) number[lane] = static_cast<real>(lane);
    return Batch::load_aligned(number);
  }
};

template <class Body>
void for_each_column(const AttentionTile& tile, const Body& body) {
  for (int64_t first = 0; first < tile.columns; first += lanes) {
    const int64_t all = std::clamp<int64_t>(first - tile.diagonal + 1, 0, tile.keys);
    const int64_t some = std::clamp<int64_t>(first + lanes - tile.diagonal, 0, tile.keys);
    body(Column{tile, first, all, some});
  }
}

/// body(row, place for a mask): rows that all queries see go without one.
template <class Whole, class Masked>
void for_each_row(const Column& column, const Whole& whole, const Masked& masked) {
  for (int64_t r = 0; r < column.all; ++r) whole(r);
  for (int64_t r = column.all; r < column.some; ++r) masked(r, column.visible(r));
}

Batch largest_logit(const Column& column, Batch maximum) {
  constexpr int together = 4;  // independent chains
  Batch partial[together] = {maximum, maximum, maximum, maximum};
  int64_t r = 0;
  for (; r + together <= column.all; r += together)
    for (int i = 0; i < together; ++i) partial[i] = xsimd::max(partial[i], column.logit(r + i));
  for (; r < column.all; ++r) partial[0] = xsimd::max(partial[0], column.logit(r));
  for (; r < column.some; ++r)
    partial[1] = xsimd::select(column.visible(r), xsimd::max(partial[1], column.logit(r)), partial[1]);
  return xsimd::max(xsimd::max(partial[0], partial[1]), xsimd::max(partial[2], partial[3]));
}

void softmax_weights(const AttentionTile& tile, const AttentionRunning& running) {
  for_each_column(tile, [&](const Column& column) {
    if (tile.bias != nullptr)
      for (int64_t r = 0; r < column.some; ++r) column.biased_logit(r).store_unaligned(column.at(tile.logits, r));
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
    for (int64_t r = column.some; r < tile.keys; ++r) Batch(0).store_unaligned(column.at(tile.logits, r));
    const Batch decay = exp2_of_negative(before - maximum);
    total += decay * Batch::load_unaligned(running.total + column.first);
    decay.store_unaligned(running.decay + column.first);
    total.store_unaligned(running.total + column.first);
    maximum.store_unaligned(running.maximum + column.first);
  });
}

void scale_columns(real* rows, int64_t stride, int64_t count, int64_t columns, const real* factor) {
  const bool needed = std::any_of(factor, factor + columns, [](real value) { return value != 1; });
  if (!needed) return;
  for (int64_t row = 0; row < count; ++row)
    for (int64_t c = 0; c < columns; c += lanes)
      (Batch::load_unaligned(rows + row * stride + c) * Batch::load_unaligned(factor + c))
          .store_unaligned(rows + row * stride + c);
}

/// body(column, row, logit) gives what is to be stored for a row; a query that does not see the key gets 0.
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

void clear_unseen(const AttentionTile& tile, real* rows) {
  for_each_column(tile, [&](const Column& column) {
    for (int64_t r = column.some; r < tile.keys; ++r) Batch(0).store_unaligned(column.at(rows, r));
  });
}

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

/// Four numbers in one register, for transposing in blocks of 4 x 4.
typedef real Four __attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));

void transpose_block(const real* in, int64_t in_stride, Four (&out)[4]) {
  const auto row = [&](int64_t i) -> const Four& { return *reinterpret_cast<const Four*>(in + i * in_stride); };
  const Four a = __builtin_shufflevector(row(0), row(1), 0, 4, 1, 5),
             b = __builtin_shufflevector(row(0), row(1), 2, 6, 3, 7),
             c = __builtin_shufflevector(row(2), row(3), 0, 4, 1, 5),
             d = __builtin_shufflevector(row(2), row(3), 2, 6, 3, 7);
  out[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  out[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  out[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  out[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

}  // namespace

int64_t attention_column_granule() { return lanes; }

void attention_clear(const AttentionRunning& running, int64_t columns) {
  std::fill_n(running.maximum, columns, std::numeric_limits<real>::lowest());
  std::fill_n(running.total, columns, real{0});
}

void attention_weights(AttentionKernel kernel, const AttentionTile& tile, const AttentionRunning& running, real* sums,
                       int64_t width) {
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

void attention_weights_backward(AttentionKernel kernel, const AttentionTile& tile, real* dweights, const real* maximum,
                                const real* shift) {
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
  const int64_t even_width = width / 4 * 4, even_count = count / 4 * 4;
  for (int64_t i = 0; i < even_count; i += 4) {
    const Four scale = *reinterpret_cast<const Four*>(factor + i);
    for (int64_t z = 0; z < even_width; z += 4) {
      Four block[4];
      transpose_block(rows + i * stride + z, stride, block);
      for (int64_t k = 0; k < 4; ++k) *reinterpret_cast<Four*>(out + (z + k) * out_stride + i) = scale * block[k];
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
  const int64_t even_width = width / 4 * 4, even_count = count / 4 * 4;
  for (int64_t i = 0; i < even_count; i += 4) {
    for (int64_t z = 0; z < even_width; z += 4) {
      Four block[4];
      transpose_block(in + z * stride + i, stride, block);
      for (int64_t k = 0; k < 4; ++k)
        *reinterpret_cast<Four*>(out + (i + k) * out_stride + z) = factor[i + k] * block[k];
    }
  }
  for (int64_t i = 0; i < count; ++i)
    for (int64_t z = i < even_count ? even_width : 0; z < width; ++z)
      out[i * out_stride + z] = factor[i] * in[z * stride + i];
}

void attention_row_products(const real* a, int64_t a_stride, const real* b, int64_t b_stride, int64_t count,
                            int64_t width, const real* factor, real* out) {
  for (int64_t i = 0; i < count; ++i) {
    Batch sum(0);
    simd::sweep(width, [&](auto at) { sum = xsimd::fma(at.load(a + i * a_stride), at.load(b + i * b_stride), sum); });
    out[i] = factor[i] * simd::sum(sum);
  }
}

}  // namespace kernels
CAPSTAN_END
