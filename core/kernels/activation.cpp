// The functions of an activation are chosen once for a pass and inlined in its loop (with_activation). A gated row has
// gate and value side by side; one pass makes both gradients and the column sums for the bias.

#include "core/kernels/activation.hpp"
#include <type_traits>

#include "core/kernels/activation_functions.hpp"
#include "core/kernels/simd_sums.hpp"

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

/// One row of activation_forward.
template <class F, bool gated>
void forward_row(const real* pre, const Bias& bias, const Bias& value_bias, real* out, int64_t columns) {
  simd::sweep(columns, [&](auto at) {
    const Batch value = F::value(bias.add_to(at.load(pre), at));
    if constexpr (gated)
      at.store(out, value * value_bias.add_to(at.load(pre + columns), at));
    else
      at.store(out, value);
  });
}

/// One row of activation_backward; out and sums may be null.
template <class F, bool gated>
void backward_row(const real* pre, const Bias& bias, const Bias& value_bias, const real* dout, real* dpre, real* out,
                  real* sums, int64_t columns) {
  simd::sweep(columns, [&](auto at) {
    const ValueAndSlope f = F::both(bias.add_to(at.load(pre), at));
    Batch result = f.value, d = at.load(dout);
    if constexpr (gated) {
      const Batch value = value_bias.add_to(at.load(pre + columns), at), dvalue = d * f.value;
      at.store(dpre + columns, dvalue);
      if (sums != nullptr) add_at(at, sums + columns, dvalue);
      result *= value;
      d *= value;
    }
    d *= f.slope;
    at.store(dpre, d);
    if (out != nullptr) at.store(out, result);
    if (sums != nullptr) add_at(at, sums, d);
  });
}

/// body(F{}, std::bool_constant<gated>{}) for the functions F of the activation.
template <class Body>
void with_pass(const ActivationPass& pass, const Body& body) {
  with_activation(pass.activation, [&](auto f) {
    if (pass.gated)
      body(f, std::true_type{});
    else
      body(f, std::false_type{});
  });
}

template <class F>
void apply_all(real* out, const real* in, int64_t count, const F& f) {
  simd::sweep(count, [&](auto at) { at.store(out, f(at.load(in))); });
}

}  // namespace

void apply(Function function, real* out, const real* in, int64_t count) {
  switch (function) {
    case Function::exp:
      return apply_all(out, in, count, [](const Batch& x) { return simd::exp(x); });
    case Function::log:
      return apply_all(out, in, count, [](const Batch& x) { return simd::log(x); });
    case Function::sigmoid:
      return apply_all(out, in, count, [](const Batch& x) { return simd::sigmoid(x); });
    case Function::tanh:
      return apply_all(out, in, count, [](const Batch& x) { return simd::tanh(x); });
  }
}

real dot(const real* a, const real* b, int64_t count) { return simd::dot(a, b, count); }

void activation_forward(const ActivationPass& pass, const real* pre, const real* bias, real* out) {
  const int64_t columns = pass.columns, width = pass.gated ? 2 * columns : columns;
  const Bias first{bias}, second{bias == nullptr ? nullptr : bias + columns};
  with_pass(pass, [&](auto f, auto gated) {
    for_rows(pass.rows, width, [&](int64_t row) {
      forward_row<decltype(f), decltype(gated)::value>(pre + row * width, first, second, out + row * columns, columns);
    });
  });
}

void activation_backward(const ActivationPass& pass, const real* pre, const real* bias, const real* dout, real* dpre,
                         real* out, ColumnSums dbias) {
  const int64_t columns = pass.columns, width = pass.gated ? 2 * columns : columns;
  const Bias first{bias}, second{bias == nullptr ? nullptr : bias + columns};
  const bool summed = dbias.data != nullptr;
  with_pass(pass, [&](auto f, auto gated) {
    for_rows_with_sums(
        pass.rows, row_grain(width), summed ? width : 0,
        [&](int64_t begin, int64_t end, real* sums) {
          for (int64_t row = begin; row < end; ++row)
            backward_row<decltype(f), decltype(gated)::value>(
                pre + row * width, first, second, dout + row * columns, dpre + row * width,
                out == nullptr ? nullptr : out + row * columns, summed ? sums : nullptr, columns);
        },
        [&](const real* sums) { dbias.add(sums, width); });
  });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
