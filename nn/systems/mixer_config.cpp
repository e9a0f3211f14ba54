// Functions of MixerConfig, each a std::visit to the function of the mixer's own config struct.
// tests/nn/systems/test_samples.cpp; registered mixers: tests/nn/systems/test_register_mixer.cpp.
#include "nn/systems/mixer_config.hpp"

#include "core/config/settings.hpp"

namespace capstan {
namespace {

/// Each alternative with its defaults. CustomMixerConfig, for registered mixers, has no defaults and is left out.
template <class... Configs>
std::vector<MixerConfig> defaults_of(const std::variant<Configs...>*) {
  std::vector<MixerConfig> mixers;
  const auto add = [&](auto* null_of_type) {
    using Config = std::remove_pointer_t<decltype(null_of_type)>;
    if constexpr (std::is_default_constructible_v<Config>) mixers.emplace_back(Config{});
  };
  (add(static_cast<Configs*>(nullptr)), ...);
  return mixers;
}

}  // namespace

std::vector<MixerConfig> default_mixers() { return defaults_of(static_cast<const MixerConfig*>(nullptr)); }

const char* mixer_name(const MixerConfig& config) {
  return std::visit([](const auto& mixer) { return mixer.type_name; }, config);
}

std::string mixer_label(const MixerConfig& config) {
  std::string options;
  if (const auto* custom = std::get_if<CustomMixerConfig>(&config))
    for (const auto& [key, value] : settings_of(*custom)) options += (options.empty() ? "" : ", ") + key + " " + value;
  return mixer_name(config) + (options.empty() ? "" : " (" + options + ")");
}

void validate_mixer(const MixerConfig& config, const ModelShape& model, Problems& problems) {
  std::visit([&](const auto& mixer) { validate_config(mixer, model, problems); }, config);
}

std::string prefix_obstacle(const MixerConfig& config) {
  return std::visit([](const auto& mixer) { return mixer.prefix_obstacle(); }, config);
}

bool has_position_limit(const MixerConfig& config) {
  return std::visit([](const auto& mixer) { return mixer.has_position_limit(); }, config);
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

std::unique_ptr<Mixer> make_mixer(const Scope& scope, const MixerShape& shape, const MixerConfig& config) {
  return std::visit([&](const auto& mixer) { return make(scope, shape, mixer); }, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
