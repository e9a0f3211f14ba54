// Gated rows are made some thousand at a time, right before the product that reads them, and made again in the
// pullback: the gated matrix never exists as a whole. The rows of a block depend on the shape alone.
#include "nn/systems/gated/gated_linear.hpp"

#include <algorithm>

#include "core/autograd/grad_sink.hpp"
#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/fused/linear_products.hpp"
#include "core/machine/profile.hpp"
#include "nn/systems/gated/kernels/passes.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Rows that are gated and multiplied at a time: enough for a product at full speed, few enough to stay in the cache.
constexpr int64_t rows_at_once = 2048;

/// body(first row, rows, buffer) over all rows, at least once; the buffer holds that many rows of `in` elements.
template <class Body>
void for_row_blocks(const LinearSizes& sizes, const Body& body) {
  Array buffer(Shape{std::min(rows_at_once, sizes.rows), sizes.in});
  int64_t first = 0;
  do {
    body(first, std::min(rows_at_once, sizes.rows - first), buffer.mutable_data());
    first += rows_at_once;
  } while (first < sizes.rows);
}

/// y = (gate * x) W^T + b, block by block.
Array forward(const Array& gate, const Array& x, const Factor& weight, const real* bias, const LinearSizes& sizes) {
  Array y(x.shape().with(-1, sizes.out));
  real* const out = y.mutable_data();
  for_row_blocks(sizes, [&](int64_t first, int64_t rows, real* gated) {
    const int64_t at = first * sizes.in;
    kernels::gate(gate.data() + at, x.data() + at, gated, rows * sizes.in);
    multiply_rows(Factor(gated, rows * sizes.in, weight), weight, bias, out + first * sizes.out,
                  {rows, sizes.in, sizes.out});
  });
  return y;
}

}  // namespace

Var gated_linear(const Var& gate, const Var& x, const Var& weight, const Var& bias) {
  const ProfileSpan span;
  const LinearSizes sizes = linear_sizes(x.shape(), weight.shape(), bias, "gated_linear");
  check(gate.shape() == x.shape(), "gated_linear: gate {} and x {} differ", gate.shape(), x.shape());
  const Factor w(weight);
  Array y = forward(gate.value(), x.value(), w, bias ? bias.value().data() : nullptr, sizes);
  return make_var("gated_linear", std::move(y), {gate, x, weight, bias},
                  [gv = gate.value(), xv = x.value(), w, sizes](const Array& dy, const Needs& needs) mutable -> Grads {
                    GradSink dweight(needs, 2, Shape{sizes.out, sizes.in}), dbias(needs, 3, Shape{sizes.out});
                    const real *const gates = gv.data(), *const rows_x = xv.data();
                    Array dgate = take_or_make(gv), dx = take_or_make(xv);
                    real *const dgate_data = dgate.mutable_data(), *const dx_data = dx.mutable_data();
                    real beta = dweight.beta();
                    for_row_blocks(sizes, [&](int64_t first, int64_t rows, real* buffer) {
                      const int64_t at = first * sizes.in, count = rows * sizes.in;
                      const LinearSizes block{rows, sizes.in, sizes.out};
                      const Factor d(dy.data() + first * sizes.out, rows * sizes.out, w);
                      if (dweight) {
                        kernels::gate(gates + at, rows_x + at, buffer, count);
                        weight_grad(d, Factor(buffer, count, w), dweight.data(), beta, block);
                        beta = 1;
                      }
                      input_grad(d, w, buffer, block);
                      kernels::gate_backward(buffer, gates + at, rows_x + at, dgate_data + at, dx_data + at, count);
                    });
                    kernels::column_sums(dy.data(), {dbias.data(), dbias.beta()}, sizes.rows, sizes.out);
                    return {dgate, dx, dweight.grad(), dbias.grad()};
                  });
}

}  // namespace capstan::CAPSTAN_PRECISION
