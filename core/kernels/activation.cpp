#include "core/kernels/activation.hpp"

#include "core/kernels/activation_functions.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

using simd::Batch;

/// A bias row that may be absent.
struct Bias {
  const real* data;
  template <class Place>
  Batch add_to(const Batch& value, const Place& at) const {
    return data == nullptr ? value : value + at.load(data);
  }
};

template <class Place>
void add_at(const Place& at, real* sums, const Batch& value) {
  at.store(sums, at.load(sums) + value);
}

template <class F>
void forward_row(const real* pre, const Bias& bias, real* out, int64_t columns) {
  simd::sweep(columns, [&](auto at) { at.store(out, F::value(bias.add_to(at.load(pre), at))); });
}

/// One row of activation_backward; out and sums may be null.
template <class F>
void backward_row(const real* pre, const Bias& bias, const real* dy, real* dpre, real* out, real* sums,
                  int64_t columns) {
  simd::sweep(columns, [&](auto at) {
    const ValueAndSlope f = F::both(bias.add_to(at.load(pre), at));
    const Batch d = at.load(dy) * f.slope;
    at.store(dpre, d);
    if (out != nullptr) at.store(out, f.value);
    if (sums != nullptr) add_at(at, sums, d);
  });
}

template <class F>
void gated_row(const real* pre, const Bias& gate_bias, const Bias& value_bias, real* out, int64_t columns) {
  simd::sweep(columns, [&](auto at) {
    const Batch gate = F::value(gate_bias.add_to(at.load(pre), at));
    at.store(out, gate * value_bias.add_to(at.load(pre + columns), at));
  });
}

template <class F>
void gated_backward_row(const real* pre, const Bias& gate_bias, const Bias& value_bias, const real* dout, real* dpre,
                        real* out, real* sums, int64_t columns) {
  simd::sweep(columns, [&](auto at) {
    const ValueAndSlope gate = F::both(gate_bias.add_to(at.load(pre), at));
    const Batch value = value_bias.add_to(at.load(pre + columns), at), d = at.load(dout);
    const Batch dgate = d * value * gate.slope, dvalue = d * gate.value;
    at.store(dpre, dgate);
    at.store(dpre + columns, dvalue);
    if (out != nullptr) at.store(out, gate.value * value);
    if (sums != nullptr) {
      add_at(at, sums, dgate);
      add_at(at, sums + columns, dvalue);
    }
  });
}

}  // namespace

void activation_forward(Activation activation, const real* pre, const real* bias, real* out, int64_t rows,
                        int64_t columns) {
  with_activation(activation, [&](auto f) {
    for_rows(rows, columns, [&](int64_t row) {
      forward_row<decltype(f)>(pre + row * columns, Bias{bias}, out + row * columns, columns);
    });
  });
}

void activation_backward(Activation activation, const real* pre, const real* bias, const real* dy, real* dpre,
                         real* out, ColumnSums dbias, int64_t rows, int64_t columns) {
  const bool summed = dbias.data != nullptr;
  with_activation(activation, [&](auto f) {
    for_rows_with_sums(
        rows, row_grain(columns), summed ? columns : 0,
        [&](int64_t begin, int64_t end, real* sums) {
          for (int64_t row = begin; row < end; ++row) {
            const int64_t first = row * columns;
            backward_row<decltype(f)>(pre + first, Bias{bias}, dy + first, dpre + first,
                                      out == nullptr ? nullptr : out + first, summed ? sums : nullptr, columns);
          }
        },
        [&](const real* sums) { dbias.add(sums, columns); });
  });
}

void gated_forward(Activation gate, const real* pre, const real* bias, real* out, int64_t rows, int64_t columns) {
  const Bias gate_bias{bias}, value_bias{bias == nullptr ? nullptr : bias + columns};
  with_activation(gate, [&](auto f) {
    for_rows(rows, 2 * columns, [&](int64_t row) {
      gated_row<decltype(f)>(pre + 2 * row * columns, gate_bias, value_bias, out + row * columns, columns);
    });
  });
}

void gated_backward(Activation gate, const real* pre, const real* bias, const real* dout, real* dpre, real* out,
                    ColumnSums dbias, int64_t rows, int64_t columns) {
  const Bias gate_bias{bias}, value_bias{bias == nullptr ? nullptr : bias + columns};
  const bool summed = dbias.data != nullptr;
  with_activation(gate, [&](auto f) {
    for_rows_with_sums(
        rows, row_grain(2 * columns), summed ? 2 * columns : 0,
        [&](int64_t begin, int64_t end, real* sums) {
          for (int64_t row = begin; row < end; ++row)
            gated_backward_row<decltype(f)>(pre + 2 * row * columns, gate_bias, value_bias, dout + row * columns,
                                            dpre + 2 * row * columns, out == nullptr ? nullptr : out + row * columns,
                                            summed ? sums : nullptr, columns);
        },
        [&](const real* sums) { dbias.add(sums, 2 * columns); });
  });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
