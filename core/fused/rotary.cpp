// The pullback turns by the opposite angle. tests/core/fused/test_rotary.cpp.
#include "core/fused/rotary.hpp"

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/fused/kernels/rotary.hpp"
#include "core/fused/linear_products.hpp"
#include "core/fused/rotary_tables.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {

int64_t rotary_pairs(const RotaryOptions& options, int64_t width) {
  check(options.base > 0, "rotary: the base must be positive, got {}", options.base);
  check(width > 0 && width % 2 == 0, "rotary: cannot rotate {} features: an even number is needed", width);
  return width / 2;
}

Var rotary(const Var& x, const Ids& positions, const RotaryOptions& options) {
  const ProfileSpan span;
  check(x.rank() == 3 || x.rank() == 4, "rotary: x must be (B, T, D) or (B, T, H, D), got shape {}", x.shape());
  check(positions.shape() == Shape{x.dim(0), x.dim(1)}, "rotary: positions {} do not fit x {}", positions.shape(),
        x.shape());
  const int64_t pairs = rotary_pairs(options, x.dim(-1)), heads = x.rank() == 4 ? x.dim(2) : 1;
  check(options.heads >= 0 && options.heads <= heads, "rotary: cannot rotate {} of {} heads", options.heads, heads);
  const RotaryTables tables = rotary_tables(positions, pairs, options.base);
  const bool interleaved = options.pairs == RotaryPairs::interleaved;
  const real *const cosine = tables.cosine.data(), *const sine = tables.sine.data();
  const kernels::RotaryPass pass{positions.size(), heads, x.dim(-1),          pairs,        interleaved,
                                 cosine,           sine,  tables.rows.data(), options.heads};
  Array y(x.shape());
  kernels::rotate(pass, false, x.value().data(), y.mutable_data());
  return make_var("rotary", std::move(y), {x}, [tables, pass](Array dy, const Needs&) -> Grads {
    const real* dy_data = dy.data();
    Array dx = take_or_make(dy);
    kernels::rotate(pass, true, dy_data, dx.mutable_data());
    return {std::move(dx)};
  });
}

}  // namespace capstan::CAPSTAN_PRECISION
