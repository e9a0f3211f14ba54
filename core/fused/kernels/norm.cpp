// A row is read twice for its mean and deviations and once for the result. The way back needs x and one or two numbers
// of each row; sums over rows are those of for_rows_with_sums(), in pieces that depend on the shape alone.

#include "core/fused/kernels/norm.hpp"
#include <algorithm>
#include <cmath>

#include "core/kernels/simd.hpp"
#include "core/kernels/simd_sums.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {
namespace {

using simd::Batch;

/// What is subtracted from a row (0 unless centred), and what it is multiplied by.
struct Moments {
  real mean, rstd;
};

/// Sums of (x - centre) and (x - centre)^2.
struct Deviations {
  real sum, squares;
};
/// The lanes after the last column count as `centre`, so they add nothing.
Deviations deviations(const real* x, real centre, int64_t columns) {
  simd::Sum sum, squares;
  simd::sweep_sums(columns, [&](auto at) {
    const Batch d = at.load(x, centre) - Batch(centre);
    sum[at] += d;
    squares[at] = simd::fma(d, d, squares[at]);
  });
  return {sum.total(), squares.total()};
}

Moments moments(NormForm kind, const real* x, int64_t columns, double eps) {
  const real n = static_cast<real>(columns);
  if (kind != NormForm::centred) {
    const real squares = deviations(x, 0, columns).squares;
    return {0, static_cast<real>(1 / std::sqrt(double{squares / n} + eps))};
  }
  // The first mean is rounded; the deviations from it correct it, so that a constant row is centred to exactly 0.
  const real rough = simd::sum(x, columns) / n;
  const Deviations d = deviations(x, rough, columns);
  const real shift = d.sum / n, variance = std::max(d.squares / n - shift * shift, real{0});
  return {rough + shift, static_cast<real>(1 / std::sqrt(double{variance} + eps))};
}

void forward_row(const NormPass& pass, const real* bias, const Moments& m, const real* x, real* y) {
  const Batch mean(m.mean), factor(m.rstd * pass.scale);
  simd::sweep(pass.columns, [&](auto at) {
    Batch value = (at.load(x) - mean) * factor;
    if (pass.gain != nullptr) value *= at.load(pass.gain);
    if (bias != nullptr) value += at.load(bias);
    at.store(y, value);
  });
}

/// Column sums a piece collects; null where not wanted.
struct RowSums {
  real *dgain, *dbias;
};

/// One row of norm_backward; returns the row sum of dy * n. With g = dy * gain * scale:
/// dx = rstd * (g - n * mean(g * n) - mean(g) when centred).
real backward_row(const NormPass& pass, const Moments& m, const real* x, const real* dy, real* dx,
                  const RowSums& sums) {
  const Batch mean(m.mean), rstd(m.rstd);
  simd::Sum dot, gain_dot, gain_sum;
  simd::sweep_sums(pass.columns, [&](auto at) {
    const Batch d = at.load(dy), product = d * ((at.load(x, m.mean) - mean) * rstd);
    dot[at] += product;
    if (pass.gain != nullptr) {
      const Batch gain = at.load(pass.gain);
      gain_dot[at] = simd::fma(product, gain, gain_dot[at]);
      gain_sum[at] = simd::fma(d, gain, gain_sum[at]);
    } else {
      gain_sum[at] += d;
    }
    if (sums.dgain != nullptr) at.store(sums.dgain, at.load(sums.dgain) + product);
    if (sums.dbias != nullptr) at.store(sums.dbias, at.load(sums.dbias) + d);
  });
  const real row_dot = dot.total();
  if (dx == nullptr) return row_dot;
  const real n = static_cast<real>(pass.columns);
  const Batch mean_dot((pass.gain != nullptr ? gain_dot.total() : row_dot) / n);
  const Batch mean_sum(pass.kind == NormForm::centred ? gain_sum.total() / n : real{0});
  const Batch factor(m.rstd * pass.scale);
  simd::sweep(pass.columns, [&](auto at) {
    Batch g = at.load(dy);
    if (pass.gain != nullptr) g *= at.load(pass.gain);
    const Batch normed = (at.load(x) - mean) * rstd;
    at.store(dx, factor * (g - mean_sum - normed * mean_dot));
  });
  return row_dot;
}

}  // namespace

void norm_forward(const NormPass& pass, const real* bias, const real* x, real* y, real* mean, real* rstd) {
  for_rows(pass.rows, pass.columns, [&](int64_t row) {
    const Moments m = moments(pass.kind, x + row * pass.columns, pass.columns, pass.eps);
    forward_row(pass, bias, m, x + row * pass.columns, y + row * pass.columns);
    rstd[row] = m.rstd;
    if (mean != nullptr) mean[row] = m.mean;
  });
}

void norm_backward(const NormPass& pass, const real* x, const real* mean, const real* rstd, const real* dy, real* dx,
                   ColumnSums dgain, ColumnSums dbias, real* row_dots) {
  const int64_t columns = pass.columns;
  const int64_t width = (dgain.data != nullptr ? columns : 0) + (dbias.data != nullptr ? columns : 0);
  const auto places = [&](real* sums) {
    return RowSums{dgain.data != nullptr ? sums : nullptr, dbias.data != nullptr ? sums + width - columns : nullptr};
  };
  for_rows_with_sums(
      pass.rows, row_grain(columns), width,
      [&](int64_t begin, int64_t end, real* sums) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t first = row * columns;
          const Moments m{mean != nullptr ? mean[row] : real{0}, rstd[row]};
          const real dot =
              backward_row(pass, m, x + first, dy + first, dx != nullptr ? dx + first : nullptr, places(sums));
          if (row_dots != nullptr) row_dots[row] = dot;
        }
      },
      [&](const real* sums) {
        dgain.add(sums, columns);
        dbias.add(sums + width - columns, columns);
      });
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
