// Rules and derived values of ModelConfig, the options of all models with blocks. Layers share parameters only where
// they are equal: tests/models/test_wiring.cpp.
#include "models/config.hpp"

#include <string>

#include "core/base/error.hpp"

namespace capstan {
namespace {

/// Passes the problems of one part of a configuration on, with the part's path in front: layers.0.mixer.window.
class ProblemsOfPart final : public Problems {
 public:
  ProblemsOfPart(std::string part, Problems& problems) : part_(std::move(part)), problems_(problems) {}
  void add(const std::string& path, const std::string& message) override {
    problems_.add(part_ + (path.empty() ? "" : "." + path), message);
  }

 private:
  std::string part_;
  Problems& problems_;
};

}  // namespace

std::vector<std::string> open_keys(const ModelConfig& config) {
  std::vector<std::string> keys;
  if (config.width == 0) keys.push_back("width");
  if (!config.dropout) keys.push_back("dropout");
  if (!config.ngram_embedding.orders.empty() && config.ngram_embedding.buckets == 0)
    keys.push_back("ngram_embedding.buckets");
  return keys;
}

void validate(const ModelConfig& config, Problems& problems) {
  for (size_t i = 0; i < config.layers.size(); ++i) {
    ProblemsOfPart of_mixer(fmt::format("layers.{}.mixer", i), problems);
    validate_mixer(config.layers[i].mixer, {config.width, config.max_length}, of_mixer);
  }
}

void check_config(const ModelConfig& config) {
  ProblemText problems("model");
  validate(config, problems);
  if (!problems.text().empty()) throw ConfigError(problems.text());
}

std::optional<int64_t> position_limit(const ModelConfig& config) {
  bool limited = config.positions == Positions::learned;
  for (const LayerConfig& layer : config.layers) limited = limited || has_position_limit(layer.mixer);
  return limited ? std::optional<int64_t>(config.max_length) : std::nullopt;
}

ModelFacts stack_facts(const ModelConfig& config) {
  const double dropout = config.dropout.value_or(0);
  std::string dropouts = fmt::format("dropout=[{:g}", dropout);
  for (const double other : {0.0, 0.1, 0.3})
    if (other != dropout) dropouts += fmt::format(", {:g}", other);
  ModelFacts facts;
  facts.searched = {dropouts + "]"};
  return facts;
}

std::vector<LayerConfig> expanded_layers(const ModelConfig& config) {
  std::vector<LayerConfig> layers;
  for (const LayerConfig& layer : config.layers) layers.insert(layers.end(), static_cast<size_t>(layer.repeat), layer);
  return layers;
}

}  // namespace capstan
