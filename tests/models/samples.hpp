// Small models, texts and weights for the tests of models/.
#pragma once

#include <memory>
#include <vector>

#include "core/autograd/tape.hpp"
#include "models/language_model.hpp"
#include "models/masked_language_model.hpp"
#include "models/text_classifier.hpp"
#include "tests/nn/systems/samples.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/ragged.hpp"
#include "tests/support/weights.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

/// Enough for gradients and parities; odd on purpose.
constexpr int64_t vocabulary = 13, width = 20, longest = 24, window = 5;

inline std::vector<MixerCase> mixer_cases() { return mixer_samples(4); }

/// For tests of something else.
inline MixerConfig any_mixer() { return any_mixer(4); }

/// Fills in a configuration: two blocks with this mixer.
template <class Config>
Config small(const MixerConfig& mixer) {
  LayerConfig layer;
  layer.mixer = mixer;
  layer.feed_forward.expansion = 1.5;
  layer.repeat = 2;
  Config config;
  config.width = width;
  config.max_length = longest;
  config.layers = {layer};
  config.positions = Positions::learned;
  return config;
}

/// A table of n-grams of these lengths.
inline void set_ngrams(NgramTableConfig& config, const std::vector<int64_t>& orders, int64_t buckets, int64_t width) {
  config.orders = orders;
  config.buckets = buckets;
  config.width = width;
}

/// A model with the store it lives in.
template <class Model>
struct Built {
  std::unique_ptr<ParamStore> store = std::make_unique<ParamStore>();
  std::unique_ptr<Model> model;
};

inline Built<LanguageModel> language_model(const LanguageModelConfig& config, uint64_t seed = 1) {
  Built<LanguageModel> built;
  built.model = std::make_unique<LanguageModel>(Scope(*built.store, seed), config, vocabulary);
  return built;
}

/// Its last token cannot be masked, as the end of a document cannot.
inline Built<MaskedLanguageModel> masked_language_model(const MaskedLanguageModelConfig& config, uint64_t seed = 1) {
  Built<MaskedLanguageModel> built;
  built.model = std::make_unique<MaskedLanguageModel>(Scope(*built.store, seed), config, vocabulary, vocabulary - 1);
  return built;
}

inline Built<TextClassifier> classifier(const TextClassifierConfig& config, uint64_t seed = 1,
                                        bool multi_label = false) {
  Built<TextClassifier> built;
  built.model = std::make_unique<TextClassifier>(Scope(*built.store, seed), config, vocabulary, 3, multi_label);
  return built;
}

/// Ready to be used, with the weights that it starts with.
template <class Model>
Built<Model> finalized(Built<Model> built) {
  built.store->finalize();
  return built;
}

/// The same with larger weights, drawn again.
template <class Model>
Built<Model> redrawn(Built<Model> built) {
  redraw(*built.store);
  return finalized(std::move(built));
}

/// The gradients of all parameters, one after the other.
inline std::vector<real> gradients_of(const ParamStore& store) {
  std::vector<real> all;
  for (const Param& param : store.params()) {
    const std::vector<real> one = param.var.grad().to_vector();
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

inline Ids random_tokens(const Shape& shape, uint64_t seed, int64_t below = vocabulary) {
  RandomStream random({seed, 1});
  Ids ids(shape);
  for (int64_t i = 0; i < ids.size(); ++i)
    ids.mutable_data()[i] = static_cast<int32_t>(random.below(static_cast<uint64_t>(below)));
  return ids;
}

/// One row in full, one padded on the right, one with two documents and padding.
inline Segments ragged(int64_t length) {
  Ids ids = Ids::zeros({3, length});
  int32_t* const out = ids.mutable_data();
  for (int64_t t = 0; t < length; ++t) {
    out[t] = 1;
    out[length + t] = t < length - 3 ? 1 : 0;
    out[2 * length + t] = t < length / 2 ? 1 : t < length - 1 ? 2 : 0;
  }
  return Segments(ids);
}

/// Next-token batch over `segments`: every label is the next token of its document.
inline Batch next_token_batch(const Segments& segments, uint64_t seed) {
  const int64_t length = segments.length();
  const Ids tokens = random_tokens(segments.ids().shape(), seed);
  Ids labels(tokens.shape(), ignored_target);
  for (const auto& span : segments.spans())
    for (int64_t t = span.begin; t + 1 < span.end; ++t)
      labels.mutable_data()[span.row * length + t] = tokens[span.row * length + t + 1];
  Ids examples({segments.batch()});
  for (int64_t row = 0; row < segments.batch(); ++row) examples.mutable_data()[row] = static_cast<int32_t>(row);
  return {tokens, segments.ids(), labels, examples};
}

/// Three texts of these lengths with a label each.
inline Batch labelled_batch(const std::vector<int64_t>& lengths, uint64_t seed) {
  Batch batch = next_token_batch(segments_of_lengths(lengths, lengths.front()), seed);
  batch.labels = Ids({3}, std::vector<int32_t>{2, 0, 1});
  return batch;
}

inline Context context_of(const Batch& batch, bool training = false) {
  return {Segments(batch.segment_ids), training, 0, batch.examples};
}

/// One plain gradient step on the batch's mean loss, which is returned. The store is finalized.
inline double descend(const Task& task, ParamStore& store, const Batch& batch, double lr) {
  TapeScope scope;
  const TaskLoss loss = task.loss(batch, context_of(batch, true));
  const double mean = static_cast<double>(loss.sum.value().item()) / static_cast<double>(loss.targets);
  store.clear_grads();
  scope.backward(loss.sum, static_cast<real>(1.0 / static_cast<double>(loss.targets)));
  for (int64_t i = 0; i < store.flat_size(); ++i) store.values()[i] -= static_cast<real>(lr) * store.grads()[i];
  return mean;
}

template <class... Configs>
std::vector<LossConfig> defaults_of_losses(const std::variant<Configs...>*) {
  return {LossConfig(Configs{})...};
}
/// Every loss of a classifier with its defaults, and with other options where those change its form.
inline std::vector<LossConfig> loss_cases() {
  std::vector<LossConfig> all = defaults_of_losses(static_cast<const LossConfig*>(nullptr));
  all.push_back(CrossEntropyConfig{0.1});
  return all;
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
