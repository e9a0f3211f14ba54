// One mixer as the tests of nn, models and train take it.
#pragma once

#include <string>

#include "nn/systems/mixer_config.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

/// What a paper puts around its mixer: a feed-forward network; nothing, two units for a block; or a feed-forward
/// network and norms after the sums.
enum class Wiring { transformer, gated_units, post_norm };

struct MixerCase {
  std::string name;
  MixerConfig config;
  int64_t boundary = 0;  // window or chunk: prefills end at its multiples and one token to both sides; 0: it has none
  bool any_length = true;
  bool exact_causality = true;  // earlier outputs keep every bit when later tokens change
  int64_t short_conv = 0;       // taps of a convolution in front; 0: none
  Wiring wiring = Wiring::transformer;
};

}  // namespace capstan::CAPSTAN_PRECISION::testing
