// A mixer from its configuration.
#pragma once

#include <memory>

#include "nn/systems/mixer_config.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Calls config.make(). Throws std::invalid_argument for a configuration that validate_mixer() refuses.
std::unique_ptr<Mixer> make_mixer(const Scope& scope, const MixerShape& shape, const MixerConfig& config);

}  // namespace capstan::CAPSTAN_PRECISION
