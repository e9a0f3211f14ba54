#include "core/ops_rotary.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/kernels/rotary.hpp"
#include "core/linear_products.hpp"
#include "core/parallel.hpp"

CAPSTAN_BEGIN
namespace {

/// Cosines and sines of one call, kept for the pullback.
struct Tables {
  Array cosine, sine;  // (table rows, pairs)
  Ids rows;            // (B * T): the table row of each row of x
};

/// One table row per position between the lowest and the highest where these are no more than the rows of x (so that
/// the sequences of a batch share them), else one per row of x.
Tables make_tables(const Ids& positions, int64_t pairs, double base) {
  const int64_t count = positions.size();
  int64_t lowest = 0, span = 0;
  if (count > 0) {
    const auto [low, high] = std::minmax_element(positions.data(), positions.data() + count);
    lowest = *low;
    span = int64_t{*high} - lowest + 1;
  }
  const bool shared = span <= count;
  const int64_t table_rows = shared ? span : count;
  Tables tables{Array(Shape{table_rows, pairs}), Array(Shape{table_rows, pairs}), Ids(Shape{count})};
  real *cosine = tables.cosine.mutable_data(), *sine = tables.sine.mutable_data();
  int32_t* rows = tables.rows.mutable_data();
  for (int64_t row = 0; row < count; ++row) rows[row] = static_cast<int32_t>(shared ? positions[row] - lowest : row);
  parallel_for(pairs, table_rows < 64 ? pairs : 1, [&](int64_t begin, int64_t end) {
    for (int64_t pair = begin; pair < end; ++pair) {
      const double frequency = std::pow(base, -static_cast<double>(pair) / static_cast<double>(pairs));
      for (int64_t row = 0; row < table_rows; ++row) {
        const double angle = static_cast<double>(shared ? lowest + row : positions[row]) * frequency;
        cosine[row * pairs + pair] = static_cast<real>(std::cos(angle));
        sine[row * pairs + pair] = static_cast<real>(std::sin(angle));
      }
    }
  });
  return tables;
}

}  // namespace

Var rotary(const Var& x, const Ids& positions, const RotaryOptions& options) {
  check(x.rank() == 3 || x.rank() == 4, "rotary: x must be (B, T, D) or (B, T, H, D), got shape {}", x.shape());
  check(positions.shape() == Shape{x.dim(0), x.dim(1)}, "rotary: positions {} do not fit x {}", positions.shape(),
        x.shape());
  check(options.base > 0, "rotary: the base must be positive, got {}", options.base);
  const int64_t dims = options.dims == 0 ? x.dim(-1) : options.dims;
  check(dims > 0 && dims % 2 == 0 && dims <= x.dim(-1),
        "rotary: cannot rotate {} of {} features: an even number is needed", dims, x.dim(-1));
  const Tables tables = make_tables(positions, dims / 2, options.base);
  const kernels::RotaryPass pass{positions.size(),
                                 x.rank() == 4 ? x.dim(2) : 1,
                                 x.dim(-1),
                                 dims / 2,
                                 options.pairs == RotaryPairs::interleaved,
                                 tables.cosine.data(),
                                 tables.sine.data(),
                                 tables.rows.data()};
  Array y(x.shape());
  kernels::rotate(pass, false, x.value().data(), y.mutable_data());
  return make_var("rotary", std::move(y), {x}, [tables, pass](Array dy, const Needs&) -> Grads {
    const real* dy_data = dy.data();
    Array dx = take_or_make(dy);
    kernels::rotate(pass, true, dy_data, dx.mutable_data());
    return {std::move(dx)};
  });
}

CAPSTAN_END
