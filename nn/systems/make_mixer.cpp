#include "nn/systems/make_mixer.hpp"

namespace capstan::CAPSTAN_PRECISION {

std::unique_ptr<Mixer> make_mixer(const Scope& scope, const MixerShape& shape, const MixerConfig& config) {
  return std::visit([&](const auto& mixer) { return make(scope, shape, mixer); }, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
