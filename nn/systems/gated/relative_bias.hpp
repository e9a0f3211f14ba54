// Attention biases of gau and flash that depend on the distance of two tokens only.
// tests/nn/systems/gated/test_relative_bias.cpp has each kind's table.
#pragma once

#include <string>
#include <vector>

#include "core/config/schema.hpp"
#include "core/fused/rotary.hpp"
#include "nn/params/scope.hpp"

namespace capstan {

enum class RelativeBiasKind { none, toeplitz, rotary };

inline std::vector<EnumName<RelativeBiasKind>> enum_names(RelativeBiasKind) {
  return {
      {RelativeBiasKind::none, "none"}, {RelativeBiasKind::toeplitz, "toeplitz"}, {RelativeBiasKind::rotary, "rotary"}};
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// Which kind of bias, and the sizes that it needs.
struct RelativeBiasConfig {
  RelativeBiasKind kind = RelativeBiasKind::none;
  int64_t max_length = 0;  // toeplitz: positions known (a chunk's where attention stays inside chunks)
  int64_t key_dim = 0;     // rotary: elements of a and of c, even
  RotaryOptions rotary = {};
};

/// b_(i-j) for query i and key j; one head.
///   toeplitz  parameter `table` (2 max_length - 1): a free parameter for each distance; throws past max_length;
///   rotary    parameters `a`, `c` (key_dim): (RoPE_i a) . (RoPE_j c), at any length; O(N key_dim).
class RelativeBias {
 public:
  RelativeBias() = default;  // none
  RelativeBias(const Scope& scope, const RelativeBiasConfig& config);

  explicit operator bool() const { return config_.kind != RelativeBiasKind::none; }
  /// The bias of all distances of N positions, (1, 2 N - 1): entry N - 1 + i - j. Undefined for kind none and without
  /// positions. Throws std::invalid_argument for more positions than a Toeplitz table has.
  Var for_length(int64_t length) const;

 private:
  Var from_rotary(int64_t length) const;

  RelativeBiasConfig config_;
  Var table_, a_, c_;
};

}  // namespace capstan::CAPSTAN_PRECISION
