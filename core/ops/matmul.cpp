// matmul(): which batches share a matrix is found from the shapes (RowPlan). Batches that are rows of one product, or
// terms of one sum, are computed as one large product; all others one by one. Gradients are products of the same kind.
#include "core/ops/matmul.hpp"

#include "core/array/rows.hpp"
#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// The operands, and the result.
enum Role : size_t { role_a, role_b, role_y };

/// A product of operands as they are stored: matrices of (rows, columns) along the last two axes, in batches along the
/// others. Runs of batches become one product or one gemm_batched(), as far as broadcasting allows.
struct Problem {
  int64_t m, n, k;
  MatmulOptions options;
  std::array<int64_t, 3> columns;  // of each role's stored matrix
  std::array<int64_t, 3> size;     // rows * columns
  RowPlan batches;                 // over the batch axes of a, b and y
};

Shape batch_shape(const Shape& shape) { return Shape(std::vector<int64_t>(shape.begin(), shape.end() - 2)); }

/// Checks the shapes and finds the batches; `result` becomes the shape of y.
Problem problem(const Shape& a, const Shape& b, const MatmulOptions& options, Shape& result) {
  check(a.rank() >= 2 && b.rank() >= 2, "matmul: need rank >= 2, got {} and {}", a, b);
  const bool ta = options.a == Transpose::yes, tb = options.b == Transpose::yes;
  const int64_t m = a[ta ? -1 : -2], k = a[ta ? -2 : -1], n = b[tb ? -2 : -1];
  check(b[tb ? -1 : -2] == k, "matmul: inner sizes differ: {}{} @ {}{}", a, ta ? " transposed" : "", b,
        tb ? " transposed" : "");
  const Shape batch = broadcast_shapes(batch_shape(a), batch_shape(b), "matmul");
  result = batch.append(m).append(n);
  const std::array<int64_t, 3> columns{a[-1], b[-1], n}, size{m * k, k * n, m * n};
  return {m, n, k, options, columns, size, plan_rows(batch, {batch_shape(a), batch_shape(b), batch})};
}

/// One factor of a product: which operand it is, and how it is taken.
struct Side {
  Role role;
  const real* data;
  Transpose transpose;
};

/// out (rows, columns) += (or =, for `replace`) left * right, in every batch;
/// batches that share an output are added up.
struct BatchProduct {
  Side left, right;
  Role out_role;
  real* out;
  int64_t rows, columns, inner;
  bool replace;
};

/// One run of batches along which every role moves by its step.
void multiply_run(const Problem& p, const BatchProduct& x, int64_t count, const RowPlan::Offsets& offsets) {
  const auto step = [&](Role role) { return p.batches.step[role]; };
  const auto at = [&](Role role) { return offsets[role] * p.size[role]; };
  const MatrixView left{x.left.data + at(x.left.role), p.columns[x.left.role], x.left.transpose};
  const MatrixView right{x.right.data + at(x.right.role), p.columns[x.right.role], x.right.transpose};
  real* const out = x.out + at(x.out_role);
  const int64_t stride = p.columns[x.out_role];
  const real beta = x.replace ? 0 : 1;
  const bool left_plain = x.left.transpose == Transpose::no, right_plain = x.right.transpose == Transpose::no;
  const bool left_moves = step(x.left.role) == 1, right_moves = step(x.right.role) == 1,
             out_moves = step(x.out_role) == 1;
  if (left_plain && left_moves && out_moves && !right_moves) {
    // (B, T, D) times one matrix: the batches are further rows.
    gemm(count * x.rows, x.columns, x.inner, left, right, out, stride, 1, beta);
  } else if (!left_plain && right_plain && left_moves && right_moves && !out_moves) {
    // The gradient of that matrix: the batches are further terms.
    gemm(x.rows, x.columns, count * x.inner, left, right, out, stride, 1, beta);
  } else if (out_moves) {
    gemm_batched(count, x.rows, x.columns, x.inner, left, left_moves ? p.size[x.left.role] : 0, right,
                 right_moves ? p.size[x.right.role] : 0, out, stride, p.size[x.out_role], 1, beta);
  } else {
    for (int64_t i = 0; i < count; ++i)
      gemm(x.rows, x.columns, x.inner,
           {left.data + (left_moves ? i * p.size[x.left.role] : 0), left.stride, left.transpose},
           {right.data + (right_moves ? i * p.size[x.right.role] : 0), right.stride, right.transpose}, out, stride, 1,
           beta);
  }
}

void multiply(const Problem& p, const BatchProduct& product) {
  walk_rows(p.batches, 0, p.batches.rows,
            [&](int64_t, const RowPlan::Offsets& offsets) { multiply_run(p, product, p.batches.length, offsets); });
}

constexpr Transpose other(Transpose transpose) { return transpose == Transpose::no ? Transpose::yes : Transpose::no; }

/// da = g b^T, or its transpose b g^T where a is stored transposed.
BatchProduct grad_a(const Problem& p, const real* b, const real* g, real* out) {
  const Transpose stored = p.options.a;
  const Side dy{role_y, g, stored};
  if (stored == Transpose::no) return {dy, {role_b, b, other(p.options.b)}, role_a, out, p.m, p.k, p.n, false};
  return {{role_b, b, p.options.b}, dy, role_a, out, p.k, p.m, p.n, false};
}

/// db = a^T g, or its transpose g^T a where b is stored transposed.
BatchProduct grad_b(const Problem& p, const real* a, const real* g, real* out) {
  const Transpose stored = p.options.b;
  const Side dy{role_y, g, stored};
  if (stored == Transpose::no) return {{role_a, a, other(p.options.a)}, dy, role_b, out, p.k, p.n, p.m, false};
  return {dy, {role_a, a, p.options.a}, role_b, out, p.n, p.k, p.m, false};
}

/// Adds into the parameter's block where there is one, else into a new array of the operand's own shape.
template <class Make>
Grad accumulate(const Problem& p, const Shape& shape, real* block, const Make& make) {
  if (block != nullptr) {
    multiply(p, make(block));
    return Grad::accumulated();
  }
  Array grad(shape);
  kernels::fill(grad.mutable_data(), grad.size(), 0);
  multiply(p, make(grad.mutable_data()));
  return grad;
}

}  // namespace

Var matmul(const Var& a, const Var& b, const MatmulOptions& options) {
  const ProfileSpan span;
  Shape shape;
  const Problem p = problem(a.shape(), b.shape(), options, shape);
  Array y(shape);
  const Side left{role_a, a.value().data(), options.a}, right{role_b, b.value().data(), options.b};
  multiply(p, {left, right, role_y, y.mutable_data(), p.m, p.n, p.k, true});
  return make_var("matmul", std::move(y), {a, b},
                  [p, a_shape = a.shape(), b_shape = b.shape(), av = b.needs_grad() ? a.value() : Array(),
                   bv = a.needs_grad() ? b.value() : Array()](const Array& g, const Needs& needs) -> Grads {
                    Grads grads(2);
                    if (needs[0])
                      grads[0] = accumulate(p, a_shape, needs.block(0),
                                            [&](real* out) { return grad_a(p, bv.data(), g.data(), out); });
                    if (needs[1])
                      grads[1] = accumulate(p, b_shape, needs.block(1),
                                            [&](real* out) { return grad_b(p, av.data(), g.data(), out); });
                    return grads;
                  });
}

}  // namespace capstan::CAPSTAN_PRECISION
