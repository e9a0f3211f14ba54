#include "models/config.hpp"

#include <string>

#include "core/base/error.hpp"

namespace capstan {
namespace {

void validate_mixer(const AftSimpleConfig&, int64_t, const std::string&, Problems&) {}
void validate_mixer(const AftFullConfig&, int64_t, const std::string&, Problems&) {}
void validate_mixer(const AftLocalConfig&, int64_t, const std::string&, Problems&) {}
void validate_heads(int64_t heads, int64_t width, const std::string& path, Problems& problems) {
  if (heads < 1 || width % heads != 0)
    problems.add(path + ".heads", fmt::format("{} heads do not divide the width {}", heads, width));
}
void validate_mixer(const AftConvConfig& c, int64_t width, const std::string& path, Problems& problems) {
  validate_heads(c.heads, width, path, problems);
}
void validate_mixer(const FastformerConfig& c, int64_t width, const std::string& path, Problems& problems) {
  validate_heads(c.heads, width, path, problems);
}
void validate_rotary(const RotaryConfig& c, int64_t features, const std::string& path, Problems& problems) {
  const int64_t turned = c.dims == 0 ? features : c.dims;
  if (c.enabled && (turned > features || turned % 2 != 0))
    problems.add(path + ".rotary_dims",
                 fmt::format("cannot turn {} of {} features: an even number is needed", turned, features));
}
void validate_mixer(const AttentionConfig& c, int64_t width, const std::string& path, Problems& problems) {
  validate_heads(c.heads, width, path, problems);
  if (c.heads >= 1 && width % c.heads == 0) validate_rotary(c.rotary, width / c.heads, path, problems);
}
void validate_unit(const GatedUnitConfig& c, const std::string& path, Problems& problems) {
  if (const char* const problem = kernel_problem(c)) problems.add(path + ".logits", problem);
  validate_rotary(c.rotary, c.key_dim, path, problems);
  if (c.position_bias == RelativeBiasKind::rotary && c.key_dim % 2 != 0)
    problems.add(path + ".key_dim", "the position bias rotary needs an even number");
}
void validate_mixer(const GauConfig& c, int64_t, const std::string& path, Problems& problems) {
  validate_unit(c, path, problems);
}
void validate_mixer(const FlashConfig& c, int64_t, const std::string& path, Problems& problems) {
  validate_unit(c, path, problems);
  if (c.chunk < 1) problems.add(path + ".chunk", fmt::format("a chunk of {} tokens", c.chunk));
  if (!c.local && !c.global)
    problems.add(path + ".local", "neither the local nor the global part is on: nothing would be mixed");
}
void validate_mixer(const CustomMixerConfig&, int64_t, const std::string&, Problems&) {}

/// Has a mixer parameters for every position?
bool knows_positions(const AftSimpleConfig&) { return false; }
bool knows_positions(const AftFullConfig&) { return true; }
bool knows_positions(const AftLocalConfig&) { return true; }
bool knows_positions(const AftConvConfig&) { return false; }
bool knows_positions(const GauConfig& c) { return c.position_bias == RelativeBiasKind::toeplitz; }
bool knows_positions(const FlashConfig&) { return false; }  // a Toeplitz bias knows the positions of a chunk
bool knows_positions(const FastformerConfig&) { return false; }
bool knows_positions(const AttentionConfig&) { return false; }
bool knows_positions(const CustomMixerConfig&) { return false; }

}  // namespace

void validate(const ModelConfig& config, Problems& problems) {
  if (config.layers.empty()) problems.add("layers", "a model needs at least one layer");
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const std::string path = fmt::format("layers.{}.mixer", i);
    std::visit([&](const auto& mixer) { validate_mixer(mixer, config.width, path, problems); }, config.layers[i].mixer);
  }
  if (config.share_layers && config.layers.size() > 1)
    problems.add("share_layers", "only layers that are all alike share parameters: write them as one with `repeat`");
}

void check_config(const ModelConfig& config) {
  ProblemText problems("model");
  validate(config, problems);
  if (!problems.text().empty()) throw ConfigError(problems.text());
}

std::optional<int64_t> position_limit(const ModelConfig& config) {
  bool limited = config.positions == Positions::learned;
  for (const LayerConfig& layer : config.layers)
    limited = limited || std::visit([](const auto& mixer) { return knows_positions(mixer); }, layer.mixer);
  return limited ? std::optional<int64_t>(config.max_length) : std::nullopt;
}

std::vector<LayerConfig> expanded_layers(const ModelConfig& config) {
  std::vector<LayerConfig> layers;
  for (const LayerConfig& layer : config.layers) layers.insert(layers.end(), static_cast<size_t>(layer.repeat), layer);
  return layers;
}

}  // namespace capstan
