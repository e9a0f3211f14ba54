// Element-wise passes of the gated attention unit, parallel over rows; sums over rows are added in pieces that depend
// on the shape alone (for_rows_with_sums). tests/nn/systems/gated/test_op.cpp and gradcheck_op.cpp.
#include "nn/systems/gated/kernels/passes.hpp"

#include "core/kernels/activation_functions.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

using simd::Batch;

/// Calls body(part, first column of the part) for the groups of columns of one packed row.
template <class Body>
void for_parts(const SiluPart* parts, int64_t count, const Body& body) {
  int64_t column = 0;
  for (int64_t p = 0; p < count; column += parts[p++].width) body(parts[p], column);
}

/// The cosines and sines of the angles that row `row` is turned by; null where nothing is turned.
struct RowTurn {
  RowTurn(const RotaryPass& pass, int64_t row)
      : cosine(pass.pairs > 0 ? pass.cosine + pass.table_rows[row] * pass.pairs : nullptr),
        sine(pass.pairs > 0 ? pass.sine + pass.table_rows[row] * pass.pairs : nullptr) {}
  const real *cosine, *sine;
};

/// The gradient `d` of a turned row, turned back into `scratch`; `d` itself where nothing is turned.
const real* turned_back(const RotaryPass& turn, RotateRow rotate, int64_t row, const real* d, real* scratch) {
  if (turn.pairs == 0) return d;
  const RowTurn tables(turn, row);
  rotate(d, tables.cosine, tables.sine, real{-1}, scratch, turn.pairs);
  std::copy(d + 2 * turn.pairs, d + turn.width, scratch + 2 * turn.pairs);
  return scratch;
}

}  // namespace

void split_silu(const real* packed, const SiluPart* parts, int64_t count, int64_t rows, int64_t columns) {
  for_rows(rows, columns, [&](int64_t row) {
    for_parts(parts, count, [&](const SiluPart& part, int64_t column) {
      const real* const in = packed + row * columns + column;
      real* const out = part.out + row * part.width;
      simd::sweep(part.width, [&](auto at) { at.store(out, Silu::value(at.load(in))); });
    });
  });
}

void split_silu_backward(const real* packed, const SiluPart* parts, int64_t count, real* dpacked, int64_t rows,
                         int64_t columns) {
  for_rows(rows, columns, [&](int64_t row) {
    for_parts(parts, count, [&](const SiluPart& part, int64_t column) {
      const real* const in = packed + row * columns + column;
      real* const out = dpacked + row * columns + column;
      if (part.dy == nullptr) {
        std::fill_n(out, part.width, real{0});
        return;
      }
      const real* const dy = part.dy + row * part.width;
      simd::sweep(part.width, [&](auto at) { at.store(out, at.load(dy) * Silu::both(at.load(in)).slope); });
    });
  });
}

void offset_scale(const OffsetScalePass& pass, real* const* outs) {
  const int64_t width = pass.turn.width;
  const RotateRow rotate = rotate_row(pass.turn.interleaved);
  for_rows(pass.turn.rows, width * pass.copies, [&](int64_t row) {
    const real* const z = pass.z + row * width;
    const RowTurn tables(pass.turn, row);
    for (int64_t c = 0; c < pass.copies; ++c) {
      const real *const gain = pass.gain + c * width, *const offset = pass.offset + c * width;
      real* const out = outs[c] + row * width;
      simd::sweep(width, [&](auto at) { at.store(out, simd::fma(at.load(gain), at.load(z), at.load(offset))); });
      if (pass.turn.pairs > 0) rotate(out, tables.cosine, tables.sine, real{1}, out, pass.turn.pairs);
    }
  });
}

void offset_scale_backward(const OffsetScalePass& pass, const real* const* dys, real* dz, ColumnSums dgain,
                           ColumnSums doffset) {
  const int64_t width = pass.turn.width, block = pass.copies * width;
  const RotateRow rotate = rotate_row(pass.turn.interleaved);
  for_rows_with_sums(
      pass.turn.rows, row_grain(block), 2 * block,
      [&](int64_t begin, int64_t end, real* sums) {
        const Buffer buffer(static_cast<size_t>(width) * sizeof(real));
        real* const scratch = static_cast<real*>(buffer.data());
        for (int64_t row = begin; row < end; ++row) {
          const real* const z = pass.z + row * width;
          real* const dz_row = dz == nullptr ? nullptr : dz + row * width;
          if (dz_row != nullptr) std::fill_n(dz_row, width, real{0});
          for (int64_t c = 0; c < pass.copies; ++c) {
            if (dys[c] == nullptr) continue;
            const real* const d = turned_back(pass.turn, rotate, row, dys[c] + row * width, scratch);
            const real* const gain = pass.gain + c * width;
            real *const gain_sums = sums + c * width, *const offset_sums = gain_sums + block;
            simd::sweep(width, [&](auto at) {
              const Batch value = at.load(d);
              at.store(gain_sums, simd::fma(value, at.load(z), at.load(gain_sums)));
              at.store(offset_sums, at.load(offset_sums) + value);
              if (dz_row != nullptr) at.store(dz_row, simd::fma(value, at.load(gain), at.load(dz_row)));
            });
          }
        }
      },
      [&](const real* sums) {
        dgain.add(sums, block);
        doffset.add(sums + block, block);
      });
}

void gate(const real* gate, const real* x, real* out, int64_t count) {
  parallel_for(count, row_grain(1), [&](int64_t begin, int64_t end) {
    simd::sweep(end - begin, [&](auto at) {
      at.index += begin;
      at.store(out, at.load(gate) * at.load(x));
    });
  });
}

void gate_backward(const real* d, const real* gate, const real* x, real* dgate, real* dx, int64_t count) {
  parallel_for(count, row_grain(1), [&](int64_t begin, int64_t end) {
    simd::sweep(end - begin, [&](auto at) {
      at.index += begin;
      const Batch value = at.load(d), gates = at.load(gate), inputs = at.load(x);
      at.store(dgate, value * inputs);
      at.store(dx, value * gates);
    });
  });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
