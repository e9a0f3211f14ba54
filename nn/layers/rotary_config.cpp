// The rule for rotary options of a configuration, told before a model is made; rotary_pairs() in core/fused/rotary.cpp
// checks the same for the op.
#include "nn/layers/rotary_config.hpp"

#include "core/base/error.hpp"

namespace capstan {

void check_rotary(const RotaryConfig& config, int64_t features, Problems& problems) {
  if (config.enabled && features % 2 != 0)
    problems.add("rotary", fmt::format("cannot rotate {} features: an even number is needed", features));
}

}  // namespace capstan
