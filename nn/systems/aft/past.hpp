// What an AFT op goes on from in Aft::prefill(): the state after the tokens that a decode state has seen.
#pragma once

#include "core/array/array.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// The state (m, D, R) of B sequences after their first tokens: running maximum of the keys and sum of e^(K - m), both
/// (B, keys), and average of the values, (B, channels).
struct AftRunning {
  Array maximum, weight, average;
};

/// What is in front of the targets of a causal op that goes on from a decode state; it then records no gradient.
struct AftPast {
  int64_t sources = 0;   // first rows of qkv, which are seen only: their q is not read, their y not written
  int64_t position = 0;  // of row 0 in its document
  const AftRunning* state = nullptr;  // of the tokens in front of row 0, if its position is not 0
};

}  // namespace capstan::CAPSTAN_PRECISION
