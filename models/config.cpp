#include "models/config.hpp"

#include <algorithm>
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
  validate(static_cast<const ModelConfig&>(config), problems);
}

void validate(const LinearClassifierConfig& config, Problems& problems) {
  const auto check_orders = [&](const char* key, const std::vector<int64_t>& orders) {
    for (size_t i = 0; i < orders.size(); ++i) {
      if (orders[i] < 1 || orders[i] > 16)
        problems.add(fmt::format("{}.{}", key, i), fmt::format("an n-gram has a length of 1 to 16, not {}", orders[i]));
      if (std::count(orders.begin(), orders.end(), orders[i]) > 1)
        problems.add(fmt::format("{}.{}", key, i), fmt::format("{} is listed twice", orders[i]));
    }
  };
  check_orders("words", config.words);
  check_orders("characters", config.characters);
  if (config.words.empty() && config.characters.empty())
    problems.add("words", "a linear-classifier needs n-grams: give lengths of words, of characters, or of both");
  if (config.buckets != 0 && (config.buckets < 16 || (config.buckets & (config.buckets - 1)) != 0))
    problems.add("buckets", fmt::format("expected 0 or a power of two from 16, got {}", config.buckets));
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
