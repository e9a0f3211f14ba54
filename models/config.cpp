#include "models/config.hpp"

#include <string>

#include "core/base/error.hpp"

namespace capstan {
namespace {

/// Puts the path of a part in front of the paths of its problems.
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
  if (config.layers.empty()) problems.add("layers", "a model needs at least one layer");
  for (size_t i = 0; i < config.layers.size(); ++i) {
    ProblemsOfPart of_mixer(fmt::format("layers.{}.mixer", i), problems);
    validate_mixer(config.layers[i].mixer, {config.width, config.max_length}, of_mixer);
  }
  if (config.share_layers && config.layers.size() > 1)
    problems.add("share_layers", "only layers that are all alike share parameters: write them as one with `repeat`");
}

void validate(const TextClassifierConfig& config, Problems& problems) {
  if (config.causal && config.pooling == Pooling::cls)
    problems.add("pooling",
                 "cls is the first token, which sees no other in a causal model; use mean, last or attention");
  if (!config.linear.used()) return validate(static_cast<const ModelConfig&>(config), problems);
  if (!config.layers.empty())
    problems.add(
        "layers",
        "a classifier with model.linear has no blocks: set layers: [], or linear without words and characters");
  if (config.pooling != Pooling::mean) problems.add("pooling", "has no effect with model.linear: leave it out");
  if (config.causal) problems.add("causal", "model.linear reads n-grams in any order: leave it out");
  if (!config.ngrams.orders.empty()) problems.add("ngrams", "model.linear replaces them: leave them out");
  if (!std::holds_alternative<EqualClasses>(config.class_weights))
    problems.add("class_weights", "are not available with model.linear");
  if (config.label_smoothing != 0) problems.add("label_smoothing", "is not available with model.linear");
}

void validate(const LanguageModelConfig& config, Problems& problems) {
  validate(static_cast<const ModelConfig&>(config), problems);
  if (config.prefix == PrefixRule::causal) return;
  for (size_t i = 0; i < config.layers.size(); ++i)
    if (const std::string obstacle = prefix_obstacle(config.layers[i].mixer); !obstacle.empty())
      problems.add("prefix", fmt::format("layers.{}: {}, so it can only be causal", i, obstacle));
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

std::vector<LayerConfig> expanded_layers(const ModelConfig& config) {
  std::vector<LayerConfig> layers;
  for (const LayerConfig& layer : config.layers) layers.insert(layers.end(), static_cast<size_t>(layer.repeat), layer);
  return layers;
}

}  // namespace capstan
