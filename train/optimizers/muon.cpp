// The iteration works on X X^T or X^T X, whichever is smaller. Matrices are shared out among the threads whole, each
// with products on one thread, which gives the same bits on any number.
#include "train/optimizers/muon.hpp"

#include <cmath>
#include <xtensor/xadapt.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xtensor.hpp>

#include "core/machine/parallel.hpp"
#include "core/machine/profile.hpp"
#include "core/products/gemm.hpp"

namespace capstan {
namespace {

constexpr double update_rms = 0.2;
constexpr int iterations = 5;

using Matrix = xt::xtensor<real, 2>;

auto as_matrix(real* data, int64_t rows, int64_t columns) {
  const std::array<size_t, 2> shape{static_cast<size_t>(rows), static_cast<size_t>(columns)};
  return xt::adapt(data, shape[0] * shape[1], xt::no_ownership(), shape);
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
  const real momentum = static_cast<real>(config.momentum), scale = static_cast<real>(update.grad_scale);
  xt::noalias(m) = momentum * m + scale * g;
  Matrix direction = scale * g + momentum * m;
  orthogonalise(direction.data(), block.rows, block.columns);
  const double lr = update.lr * block.lr_factor;
  const double length = update_rms * std::sqrt(static_cast<double>(std::max(block.rows, block.columns)));
  const real keep = static_cast<real>(1 - lr * config.weight_decay);
  const real rate = static_cast<real>(lr * length);
  xt::noalias(w) = keep * w - rate * direction;
  g.fill(0);
}

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

void orthogonalise(real* matrix, int64_t rows, int64_t columns) {
  const double norm = std::sqrt(kernels::sum_of_squares(matrix, rows * columns));
  if (norm == 0) return;
  auto result = as_matrix(matrix, rows, columns);
  Matrix x = result / static_cast<real>(norm);
  const real a = 3.4445F, b = -4.7750F, c = 2.0315F;
  const bool wide = rows <= columns;  // X X^T or X^T X, whichever is smaller: both give the same X
  const int64_t size = std::min(rows, columns), length = std::max(rows, columns);
  const auto square = [size](const Matrix& m) { return MatrixView{m.data(), size}; };
  const MatrixView as_is{x.data(), columns}, transposed{x.data(), columns, Transpose::yes};
  const std::array<size_t, 2> square_shape{static_cast<size_t>(size), static_cast<size_t>(size)};
  Matrix gram(square_shape), factor(square_shape), product(x.shape());
  for (int i = 0; i < iterations; ++i) {
    gemm(size, size, length, wide ? as_is : transposed, wide ? transposed : as_is, gram.data(), size);
    gemm(size, size, size, square(gram), square(gram), factor.data(), size);
    xt::noalias(factor) = b * gram + c * factor;
    gemm(rows, columns, size, wide ? square(factor) : as_is, wide ? as_is : square(factor), product.data(), columns);
    xt::noalias(x) = a * x + product;
  }
  xt::noalias(result) = x;
}

}  // namespace capstan
