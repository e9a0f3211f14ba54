// dropout(): a mask is a function of counters, so the pullback draws it again. tests/core/base/test_random.cpp holds
// the words and the rate.
#include "core/ops/dropout.hpp"

#include <algorithm>
#include <cmath>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/kernels/random.hpp"
#include "core/machine/parallel.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// The numbers of a rate: a word of Philox below `threshold` drops its element, and those kept are scaled.
struct DropoutRate {
  uint32_t threshold;
  real scale;
};

/// Throws std::invalid_argument for a rate outside [0, 1).
DropoutRate dropout_rate(double rate) {
  check(rate >= 0 && rate < 1, "dropout: rate {} is outside [0, 1)", rate);
  const double threshold = std::min(std::round(rate * 4294967296.0), 4294967295.0);
  return {static_cast<uint32_t>(threshold), static_cast<real>(1 / (1 - rate))};
}

/// What the mask of one call is drawn from, to be laid over x and, later, over the gradient: it is never stored.
struct Mask {
  DropoutOptions options;
  int64_t rows, length, channels;  // rows = B * length
  DropoutRate rate;
};

/// Checks the options against x.
Mask make_mask(const Shape& x, const DropoutOptions& options) {
  const DropoutRate rate = dropout_rate(options.rate);
  check(x.rank() >= 2, "dropout: need (B, T, ...) or (B, D), got {}", x);
  const int64_t batch = x[0], length = x.rank() == 2 ? 1 : x[1];
  check(options.examples.shape() == Shape{batch}, "dropout: examples {} do not fit x {}", options.examples.shape(), x);
  check(options.positions.empty() || options.positions.size() == batch * length,
        "dropout: positions {} do not fit x {}", options.positions.shape(), x);
  return {options, batch * length, length, x.product(x.rank() == 2 ? 1 : 2, x.rank()), rate};
}

/// out = the mask on `in`, row by row.
void lay_over(const Mask& mask, const real* in, real* out) {
  const uint64_t key = philox_key(mask.options.key);
  const auto step = static_cast<uint32_t>(mask.options.step);
  const Ids &examples = mask.options.examples, &positions = mask.options.positions;
  const int64_t grain =
      1 + 2048 / std::max<int64_t>(mask.channels, 1);  // ten rounds of Philox make an element expensive
  parallel_each(mask.rows, grain, [&](int64_t row) {
    const auto example = static_cast<uint32_t>(examples[row / mask.length]);
    const auto position = static_cast<uint32_t>(positions.empty() ? row % mask.length : positions[row]);
    const kernels::DropoutRow counters{
        {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)}, example, position, step};
    const int64_t at = row * mask.channels;
    kernels::dropout_row(out + at, in + at, mask.channels, counters, mask.rate.threshold, mask.rate.scale);
  });
}

Array masked(const Array& x, const Mask& mask) {
  Array y(x.shape());
  lay_over(mask, x.data(), y.mutable_data());
  return y;
}

}  // namespace

Var dropout(const Var& x, const DropoutOptions& options) {
  if (options.rate == 0) return x;
  const ProfileSpan span;
  const Mask mask = make_mask(x.shape(), options);
  return make_var("dropout", masked(x.value(), mask), {x},
                  [mask](const Array& g, const Needs&) -> Grads { return {masked(g, mask)}; });
}

}  // namespace capstan::CAPSTAN_PRECISION
