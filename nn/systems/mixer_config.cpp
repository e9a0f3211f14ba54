#include "nn/systems/mixer_config.hpp"

#include "core/base/error.hpp"
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

namespace {

template <class Config>
std::string obstacle(const Config&) {
  return "";
}
std::string obstacle(const AftConvConfig&) { return "the kernel of aft-conv depends on the direction"; }
std::string obstacle(const CustomMixerConfig& config) {
  return fmt::format("the custom mixer {} cannot be read in both directions", config.name);
}
std::string t5_obstacle(RelativeBiasKind kind) {
  return kind == RelativeBiasKind::t5 ? "the buckets of position_bias t5 depend on the direction" : "";
}
std::string obstacle(const GauConfig& config) { return t5_obstacle(config.position_bias); }
std::string obstacle(const FlashConfig& config) { return config.local ? t5_obstacle(config.position_bias) : ""; }

}  // namespace

std::string prefix_obstacle(const MixerConfig& config) {
  return std::visit([](const auto& mixer) { return obstacle(mixer); }, config);
}

bool has_position_limit(const MixerConfig& config) {
  return std::visit([](const auto& mixer) { return mixer.has_position_limit(); }, config);
}

}  // namespace capstan
