// Rotary positions (Su et al. 2021, arXiv 2104.09864). tests/core/fused/test_rotary.cpp holds the angles.
#pragma once

#include <vector>

#include "core/array/array.hpp"
#include "core/autograd/var.hpp"
#include "core/config/schema.hpp"

namespace capstan {

/// Which of n features form pair i: (2i, 2i + 1), or (i, i + n/2).
enum class RotaryPairs { interleaved, halves };

inline std::vector<EnumName<RotaryPairs>> enum_names(RotaryPairs) {
  return {{RotaryPairs::interleaved, "interleaved"}, {RotaryPairs::halves, "halves"}};
}

/// Which features rotary() turns in pairs, and how fast.
struct RotaryOptions {
  double base = 10000;
  RotaryPairs pairs = RotaryPairs::interleaved;
  int64_t heads = 0;  // of (B, T, H, D), rotate the first `heads` only; 0: all
};

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// Pairs in vectors of `width` features. Throws std::invalid_argument for a base that is not positive and for an odd
/// number of features.
int64_t rotary_pairs(const RotaryOptions& options, int64_t width);

/// Turns pair i of the features at position p by the angle p * base^(-2i/D). Angles are computed
/// in double.  x: (B, T, D) or (B, T, H, D), positions: (B, T) -> shape of x. Su et al. 2021, arXiv 2104.09864. Throws
/// std::invalid_argument naming the shapes, or for an odd number of features or too many heads.
Var rotary(const Var& x, const Ids& positions, const RotaryOptions& options = {});

}  // namespace capstan::CAPSTAN_PRECISION
