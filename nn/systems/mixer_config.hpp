// The mixers there are: a new one is an include and an entry in MixerConfig (docs/adding.md). Read by nn/blocks, models
// and run/imports. tests/nn/systems/test_samples.cpp runs what every mixer must do for each entry.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "nn/mixer/custom_mixer.hpp"
#include "nn/mixer/mixer_interface.hpp"
#include "nn/systems/aft/mixer.hpp"
#include "nn/systems/attention/mixer.hpp"
#include "nn/systems/fastformer/mixer.hpp"
#include "nn/systems/flash/mixer.hpp"
#include "nn/systems/gau/mixer.hpp"

namespace capstan {

/// The configuration of any mixer.
using MixerConfig = std::variant<AftLocalConfig, AftSimpleConfig, AftFullConfig, AftConvConfig, GauConfig,
                                 FastformerConfig, AttentionConfig, FlashConfig, CustomMixerConfig>;

/// The mixers of the library, each with the defaults of its options.
std::vector<MixerConfig> default_mixers();
/// The YAML name of a mixer's type.
const char* mixer_name(const MixerConfig& config);
/// The name, and for a registered mixer its options: "running-mean (expansion 2)".
std::string mixer_label(const MixerConfig& config);
/// Adds to `problems` what is wrong with the mixer in this model, with paths relative to the mixer.
void validate_mixer(const MixerConfig& config, const ModelShape& model, Problems& problems);
/// Why a causal model with this mixer cannot read the beginning of a document as a whole (nn/mixer/mixer.hpp); empty
/// if it can.
std::string prefix_obstacle(const MixerConfig& config);
/// Whether the mixer has parameters for every position, and so a longest document.
bool has_position_limit(const MixerConfig& config);

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

template <class... Configs>
constexpr bool are_mixer_configs(const std::variant<Configs...>*) {
  return ((std::is_same_v<Configs, CustomMixerConfig> || is_mixer_config<Configs>()) && ...);
}
static_assert(are_mixer_configs(static_cast<const MixerConfig*>(nullptr)));

/// A mixer from its configuration: calls the make() that is declared with the mixer's config struct. Throws
/// std::invalid_argument for a configuration that validate_mixer() refuses.
std::unique_ptr<Mixer> make_mixer(const Scope& scope, const MixerShape& shape, const MixerConfig& config);

}  // namespace capstan::CAPSTAN_PRECISION
