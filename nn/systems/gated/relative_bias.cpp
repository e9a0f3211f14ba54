// Biases by the distance of two tokens: tables, and products of turned vectors. A checkpoint needs the bias it
// was trained with: tests/nn/systems/gated/test_relative_bias.cpp.
#include "nn/systems/gated/relative_bias.hpp"

#include "core/base/error.hpp"
#include "core/ops/math.hpp"
#include "core/ops/shape.hpp"
#include "nn/systems/gated/op.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// The first or the second elements of all pairs, (pairs).
Var half_of_pairs(const Var& x, RotaryPairs form, int64_t half) {
  const int64_t pairs = x.size() / 2;
  if (form == RotaryPairs::halves) return slice(x, 0, half * pairs, (half + 1) * pairs);
  return reshape(slice(reshape(x, {pairs, 2}), 1, half, half + 1), {pairs});
}

}  // namespace

RelativeBias::RelativeBias(const Scope& scope, const RelativeBiasConfig& config) : config_(config) {
  const ParamOptions position{/*decay=*/false};
  switch (config.kind) {
    case RelativeBiasKind::none:
      return;
    case RelativeBiasKind::toeplitz:
      check(config.max_length > 0, "relative_bias: a Toeplitz table needs max_length > 0");
      table_ = scope.param("table", {2 * config.max_length - 1}, init::normal(0.02), position);
      return;
    case RelativeBiasKind::rotary:
      check(config.key_dim > 0 && config.key_dim % 2 == 0,
            "relative_bias: rotary needs an even number of features, got {}", config.key_dim);
      a_ = scope.param("a", {config.key_dim}, init::normal(0.02), position);
      c_ = scope.param("c", {config.key_dim}, init::normal(0.02), position);
      return;
  }
}

Var RelativeBias::for_length(int64_t length) const {
  if (length == 0) return Var();
  switch (config_.kind) {
    case RelativeBiasKind::none:
      return Var();
    case RelativeBiasKind::toeplitz: {
      const int64_t known = config_.max_length;
      check(length <= known, "relative_bias: {} positions exceed the {} of this Toeplitz table", length, known);
      return reshape(slice(table_, 0, known - length, known + length - 1), {1, 2 * length - 1});
    }
    case RelativeBiasKind::rotary:
      return from_rotary(length);
  }
  throw std::logic_error("relative_bias: unknown kind");
}

/// With a pair (a0, a1) of a and (c0, c1) of c at angle w per position, (RoPE_i a) . (RoPE_j c) sums
/// (a0 c0 + a1 c1) cos(w d) + (a0 c1 - a1 c0) sin(w d), d = i - j.
Var RelativeBias::from_rotary(int64_t length) const {
  const RotaryPairs form = config_.rotary.pairs;
  const Var a0 = half_of_pairs(a_, form, 0), a1 = half_of_pairs(a_, form, 1);
  const Var c0 = half_of_pairs(c_, form, 0), c1 = half_of_pairs(c_, form, 1);
  return rotary_series(a0 * c0 + a1 * c1, a0 * c1 - a1 * c0, length, config_.rotary.base);
}

}  // namespace capstan::CAPSTAN_PRECISION
