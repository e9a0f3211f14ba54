// Dropout with counters. Srivastava et al. 2014.
#pragma once

#include "core/autograd/var.hpp"
#include "core/base/random.hpp"

namespace capstan::CAPSTAN_PRECISION {

struct DropoutOptions {
  double rate = 0;     // probability of becoming 0, in [0, 1)
  RandomKey key;       // of the module
  uint64_t step = 0;   // the optimizer's step; only its low 32 bits are used
  Ids examples;        // (B): index of each row's example in the epoch's order
  Ids positions = {};  // (B, T), or (B) where x has rank 2; empty: t, or 0 where x has rank 2
};

/// x: (B, T, ...) or (B, D) -> same shape: every element is kept with probability 1 - rate and scaled by 1 / (1 -
/// rate), else 0.  dx = the same mask on g. The mask is regenerated in the pullback, not stored, and is a pure function
/// of (key, example, position, channel, step): padding, the row's place in the batch and threads do not change it. A
/// rate of 0 gives x itself. Throws std::invalid_argument for a rate outside [0, 1) or ids that do not fit x.
Var dropout(const Var& x, const DropoutOptions& options);

}  // namespace capstan::CAPSTAN_PRECISION
