// The rule for rotary options of a configuration, told before a model is made; rotary_pairs() in core/fused/rotary.cpp
// checks the same for the op.
#include "nn/layers/rotary_config.hpp"

#include "core/base/error.hpp"

namespace capstan {

void check_rotary(const RotaryConfig& config, int64_t features, Problems& problems) {
  const int64_t turned = config.dims == 0 ? features : config.dims;
  if (config.enabled && (turned > features || turned % 2 != 0))
    problems.add("compat.rotary_dims",
                 fmt::format("cannot rotate {} of {} features: an even number is needed", turned, features));
}

}  // namespace capstan
