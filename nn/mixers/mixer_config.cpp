#include "nn/mixers/mixer_config.hpp"

#include "core/config/settings.hpp"

namespace capstan {

const char* mixer_name(const MixerConfig& config) {
  if (const auto* custom = std::get_if<CustomMixerConfig>(&config)) return custom->name.c_str();
  return std::visit([](const auto& mixer) { return std::decay_t<decltype(mixer)>::type_name; }, config);
}

std::string mixer_label(const MixerConfig& config) {
  std::string options;
  if (const auto* custom = std::get_if<CustomMixerConfig>(&config))
    for (const auto& [key, value] : settings_of(options_of(*custom)))
      options += (options.empty() ? "" : ", ") + key + " " + value;
  return mixer_name(config) + (options.empty() ? "" : " (" + options + ")");
}

void validate_mixer(const MixerConfig& config, const ModelShape& model, Problems& problems) {
  std::visit([&](const auto& mixer) { validate_config(mixer, model, problems); }, config);
}

bool has_position_limit(const MixerConfig& config) {
  return std::visit([](const auto& mixer) { return mixer.has_position_limit(); }, config);
}

}  // namespace capstan
