// The iteration works on X X^T or X^T X, whichever is smaller. Matrices are shared out among the threads whole, each
// with products on one thread, which gives the same bits on any number. tests/train/test_muon.cpp.
#include "train/optimizers/muon.hpp"

#include <cmath>
#include <xtensor/xadapt.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xtensor.hpp>

#include "core/kernels/elementwise.hpp"
#include "core/machine/parallel.hpp"
#include "core/machine/profile.hpp"
#include "core/products/gemm.hpp"

namespace capstan {
namespace {

constexpr double default_weight_decay = 0.1;  // where no plan has chosen one
constexpr double kept_momentum = 0.95;        // share of the sum of gradients that is kept
constexpr double update_rms = 0.2;            // root mean square of an update, in learning rates: as AdamW's (muon.hpp)
constexpr int iterations = 5;                 // as Jordan et al. 2024: singular values are then near 1
/// Of the polynomial that Jordan et al. 2024 (Muon) chose: steep at 0, and near 1 for singular values of 0.01 to 1.
constexpr real coefficient_a = 3.4445F, coefficient_b = -4.7750F, coefficient_c = 2.0315F;

using Matrix = xt::xtensor<real, 2>;

auto as_matrix(real* data, int64_t rows, int64_t columns) {
  const std::array<size_t, 2> shape{static_cast<size_t>(rows), static_cast<size_t>(columns)};
  return xt::adapt(data, shape[0] * shape[1], xt::no_ownership(), shape);
}

template <class T>
MatrixOf<T> matrix_of(const T* data, int64_t stride, Transpose transpose = Transpose::no) {
  return {data, stride, transpose};
}

/// A matrix of the store, or one of those stacked in a weight.
struct Block {
  real *w, *g, *m;  // value, gradient, momentum: (rows, columns) each
  int64_t rows, columns;
  double lr_factor;
};

/// The matrices that this rank updates.
std::vector<Block> matrices(ParamStore& params, OptimizerState& momentum) {
  std::vector<Block> blocks;
  for (const Param& param : params.params()) {
    if (!is_matrix(param)) continue;
    const ParamPart<real> memory = momentum.of(param);
    if (memory.size() == 0) continue;  // frozen, or of another rank
    const int64_t columns = param.var.dim(1);
    int64_t at = 0;
    const auto add = [&](int64_t rows) {
      const int64_t place = param.offset + at;
      blocks.push_back(
          {params.values() + place, params.grads() + place, memory.values + at, rows, columns, param.lr_factor});
      at += rows * columns;
    };
    if (param.options.stacked.empty()) add(param.var.dim(0));
    for (const int64_t rows : param.options.stacked) add(rows);
  }
  return blocks;
}

void update_matrix(const MuonConfig& config, const Update& update, const Block& block) {
  auto w = as_matrix(block.w, block.rows, block.columns);
  auto g = as_matrix(block.g, block.rows, block.columns);
  auto m = as_matrix(block.m, block.rows, block.columns);
  const real momentum = static_cast<real>(kept_momentum), scale = static_cast<real>(update.grad_scale);
  xt::noalias(m) = momentum * m + scale * g;
  Matrix direction = scale * g + momentum * m;
  orthogonalise(direction.data(), block.rows, block.columns, update.bf16);
  const double lr = update.lr * block.lr_factor;
  const double length = update_rms * std::sqrt(static_cast<double>(std::max(block.rows, block.columns)));
  const real keep = static_cast<real>(1 - lr * config.weight_decay.value_or(default_weight_decay));
  const real rate = static_cast<real>(lr * length);
  xt::noalias(w) = keep * w - rate * direction;
  g.fill(0);
}

/// X <- (a + b G + c G^2) X with G = X X^T, or X <- X (a + b G + c G^2) with G = X^T X, whichever G is smaller: both
/// give the same X. Products are of floats, or of factors rounded to bf16.
class NewtonSchulz {
 public:
  NewtonSchulz(int64_t rows, int64_t columns, bool bf16) : rows_(rows), columns_(columns), bf16_(bf16) {}
  int64_t size() const { return std::min(rows_, columns_); }
  int64_t length() const { return std::max(rows_, columns_); }

  void step_by_step(Matrix& x) const {
    Matrix gram = square(), factor = square(), product(x.shape());
    for (int i = 0; i < iterations; ++i) {
      gram_of(x, gram);
      factor_of(gram, factor);
      apply(factor, x, product);
      std::swap(x, product);
    }
  }

  /// The result of step_by_step() by steps that work on G alone: each multiplies X by a polynomial F of G, so G becomes
  /// F G F, and X is multiplied by the product of all F at the end. Fewer operations where X is long. Not in bf16,
  /// whose rounding would grow from step to step, where a fresh G of each X corrects it.
  void by_gram_matrix(Matrix& x) const {
    Matrix gram = square(), factor = square(), all = square(), product = square();
    gram_of(x, gram);
    for (int i = 0; i < iterations; ++i) {
      factor_of(gram, factor);
      if (i == 0) {
        all = factor;
      } else {
        multiply(all, factor, product);
        std::swap(all, product);
      }
      if (i + 1 == iterations) break;
      multiply(gram, factor, product);
      multiply(product, factor, gram);
    }
    Matrix y(x.shape());
    apply(all, x, y);
    std::swap(x, y);
  }

 private:
  bool wide() const { return rows_ <= columns_; }
  Matrix square() const {
    return Matrix(std::array<size_t, 2>{static_cast<size_t>(size()), static_cast<size_t>(size())});
  }
  Bf16Array rounded(const Matrix& m) const {
    Bf16Array result(Shape{static_cast<int64_t>(m.size())});
    kernels::round_to_bf16(result.mutable_data(), m.data(), result.size());
    return result;
  }
  /// body(elements of a, elements of b), floats or rounded.
  template <class Body>
  void as_factors(const Matrix& a, const Matrix& b, const Body& body) const {
    if (!bf16_) return body(a.data(), b.data());
    const Bf16Array left = rounded(a), right = &a == &b ? left : rounded(b);
    body(left.data(), right.data());
  }

  void gram_of(const Matrix& x, Matrix& gram) const {
    const int64_t along = wide() ? columns_ : 1;  // from a row of X, or of X^T, to the next
    const Transpose left = wide() ? Transpose::no : Transpose::yes, right = wide() ? Transpose::yes : Transpose::no;
    as_factors(x, x, [&](const auto* rows, const auto* columns) {
      symmetric_product(
          length(), [&](int64_t i) { return matrix_of(rows + i * along, columns_, left); },
          [&](int64_t j) { return matrix_of(columns + j * along, columns_, right); }, gram);
    });
  }
  /// The product of two polynomials of one symmetric matrix, which is symmetric.
  void multiply(const Matrix& a, const Matrix& b, Matrix& to) const {
    as_factors(a, b, [&](const auto* left, const auto* right) {
      symmetric_product(
          size(), [&](int64_t i) { return matrix_of(left + i * size(), size()); },
          [&](int64_t j) { return matrix_of(right + j, size()); }, to);
    });
  }
  /// A symmetric product in blocks, of rows from i and columns from j on. Blocks above the diagonal are copied.
  template <class Rows, class Columns>
  void symmetric_product(int64_t inner, const Rows& rows_from, const Columns& columns_from, Matrix& to) const {
    constexpr int64_t most = 128;  // smaller blocks would save more operations, and do each more slowly
    const int64_t n = size();
    for (int64_t i = 0; i < n; i += most)
      for (int64_t j = 0; j <= i; j += most) {
        const int64_t rows = std::min(most, n - i), columns = std::min(most, n - j);
        gemm(rows, columns, inner, rows_from(i), columns_from(j), to.data() + i * n + j, n);
        if (i == j) continue;
        for (int64_t r = i; r < i + rows; ++r)
          for (int64_t c = j; c < j + columns; ++c) to.data()[c * n + r] = to.data()[r * n + c];
      }
  }
  /// a + b G + c G^2
  void factor_of(const Matrix& gram, Matrix& factor) const {
    multiply(gram, gram, factor);
    xt::noalias(factor) = coefficient_b * gram + coefficient_c * factor;
    for (size_t i = 0; i < factor.shape(0); ++i) factor(i, i) += coefficient_a;
  }
  void apply(const Matrix& factor, const Matrix& x, Matrix& to) const {
    as_factors(factor, x, [&](const auto* f, const auto* e) {
      const auto square = matrix_of(f, size()), as_is = matrix_of(e, columns_);
      gemm(rows_, columns_, size(), wide() ? square : as_is, wide() ? as_is : square, to.data(), columns_);
    });
  }

  int64_t rows_, columns_;
  bool bf16_;
};

}  // namespace

std::vector<StateSpec> MuonConfig::states() {
  const auto others = [](const Param& param) { return !is_matrix(param); };
  return {{"momentum", is_matrix, /*whole_matrices=*/true}, {"first_moment", others}, {"second_moment", others}};
}

void MuonConfig::update(const Update& update, std::vector<OptimizerState>& states) const {
  update_adamw(adamw, update, states[1], states[2]);
  const std::vector<Block> blocks = matrices(update.params, states[0]);
  // Each matrix is updated by one thread, so that no result depends on how many threads there are.
  const OneThreadProducts products;
  parallel_units(static_cast<int64_t>(blocks.size()),
                 [&](int64_t i) { update_matrix(*this, update, blocks[static_cast<size_t>(i)]); });
}

void orthogonalise(real* matrix, int64_t rows, int64_t columns, bool bf16) {
  const double norm = std::sqrt(kernels::sum_of_squares(matrix, rows * columns));
  if (norm == 0) return;
  auto result = as_matrix(matrix, rows, columns);
  Matrix x = result / static_cast<real>(norm);
  const int64_t size = std::min(rows, columns), length = std::max(rows, columns);
  // Operations over size^3: 20 r + 10 step by step, 4 r + 34 by the Gram matrix, where r = length / size; of large
  // symmetric products a quarter to a half is saved. In bf16 an operation takes about half the time.
  const bool rounded = bf16 && bf16_backend() == Bf16Backend::onednn && length < 4 * size;
  const NewtonSchulz iteration(rows, columns, rounded);
  if (!rounded && 2 * length >= 3 * size)
    iteration.by_gram_matrix(x);
  else
    iteration.step_by_step(x);
  xt::noalias(result) = x;
}

}  // namespace capstan
