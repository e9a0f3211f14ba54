// Every system, wired as its paper wires it.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "nn/layers/feed_forward.hpp"
#include "tests/models/samples.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

struct System {
  std::string name;
  LayerConfig layer;
};

/// As its paper wires it. Of gated units, which have no feed-forward network, two take the place of a block.
inline LayerConfig layer_of(const MixerCase& c) {
  LayerConfig layer;
  layer.mixer = c.config;
  layer.feed_forward.expansion = 1.5;
  layer.repeat = 2;
  if (c.wiring == Wiring::post_norm) layer.norm_placement = NormPlacement::post;
  if (c.wiring == Wiring::gated_units) {
    layer.feed_forward = {};
    layer.feed_forward.type = FeedForwardKind::none;
    layer.norm.type = NormKind::scale;
    layer.repeat = 4;
  }
  return layer;
}

inline std::vector<System> systems() {
  std::vector<System> all;
  for (const MixerCase& c : mixer_cases())
    if (c.name == mixer_name(c.config)) all.push_back({c.name, layer_of(c)});
  return all;
}

/// A small model of it.
template <class Config>
Config model_config(const System& system) {
  auto config = small<Config>(system.layer.mixer);
  config.layers = {system.layer};
  config.embedding_norm = system.layer.norm_placement == NormPlacement::post;  // as in BERT: nothing else scales x
  return config;
}

/// Two rows: a pair of a source of 5 and a target of 7 tokens; pairs of 6 + 2 and 1 + 3 tokens, and padding.
inline Batch pair_batch(uint64_t seed = 6) {
  const Ids tokens = random_tokens({2, 14}, seed);
  Ids segments = Ids::zeros({2, 14}), labels({2, 14}, ignored_target);
  const auto add = [&](int64_t row, int64_t begin, int64_t source, int64_t target, int32_t id) {
    for (int64_t t = begin; t < begin + source + target; ++t) {
      segments.mutable_data()[row * 14 + t] = id;
      if (t + 1 >= begin + source)
        labels.mutable_data()[row * 14 + t] = static_cast<int32_t>((3 * t + id) % vocabulary);
    }
  };
  add(0, 0, 5, 7, 1);
  add(1, 0, 6, 2, 1);
  add(1, 8, 1, 3, 2);
  return {tokens, segments, labels, Ids({2}, std::vector<int32_t>{0, 1})};
}

/// A classifier of the system with all that draws random numbers: dropout, n-grams, n-gram dropout.
inline Built<TextClassifier> classifier_with_ngrams(const std::string& name) {
  const std::vector<System> all = systems();
  const auto system = std::find_if(all.begin(), all.end(), [&](const System& s) { return s.name == name; });
  auto config = model_config<TextClassifierConfig>(*system);
  config.dropout = 0.2;
  set_ngrams(config.ngrams, {1, 2}, 50, 6);
  config.ngrams.dropout = 0.3;
  auto model = classifier(config);
  model.store->finalize();
  return model;
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
