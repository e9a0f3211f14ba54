#include "run/report/model_view.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"

namespace capstan {
namespace {

constexpr size_t most_tokens = 128, most_layers = 8, most_heads = 4;
constexpr int64_t most_positions = 512;

/// values: (heads, T, T).
std::vector<HeatMap> maps_of(const Array& values, bool causal) {
  const auto heads = static_cast<size_t>(values.dim(0)), length = static_cast<size_t>(values.dim(1));
  std::vector<HeatMap> maps;
  for (size_t head = 0; head < std::min(heads, most_heads); ++head) {
    HeatMap map{heads > 1 ? fmt::format("head {}", head + 1) : "", {length, length, {}}, "target t", "source s"};
    const float* const from = values.data() + head * length * length;
    map.matrix.values.assign(from, from + length * length);
    for (size_t t = 0; causal && t < length; ++t)
      std::fill_n(map.matrix.values.begin() + static_cast<std::ptrdiff_t>(t * length + t + 1), length - t - 1, NAN);
    maps.push_back(std::move(map));
  }
  return maps;
}

/// The weights of the last token for each word, per head; for additive attention, which pools, those of the whole text.
std::vector<std::vector<float>> word_weights(const Array& values, const Words& words) {
  const auto heads = static_cast<size_t>(values.dim(0)), length = static_cast<size_t>(values.dim(1));
  std::vector<std::vector<float>> all;
  for (size_t head = 0; head < std::min(heads, most_heads); ++head) {
    std::vector<float> weights(words.texts.size(), 0);
    const float* const row = values.data() + (head * length + length - 1) * length;
    for (size_t token = 0; token < length; ++token) weights[words.of_token[token]] += row[token];
    all.push_back(std::move(weights));
  }
  return all;
}

/// One text's: (1, H, T, T).
WeightsView view_of_weights(const MixingWeights& weights, const Words& words, bool causal) {
  const Array& values = weights.values;
  const Array heads = values.reshape(Shape{values.dim(1), values.dim(2), values.dim(3)});
  WeightsView view{weights.name, {}, {}};
  // Without causality every token uses the same pool: all rows of a map would be equal.
  if (!weights.pool || causal) view.maps = maps_of(heads, causal);
  if (weights.pool) view.words = word_weights(heads, words);
  return view;
}

LayerView view_of_layer(const Array& bias, const std::vector<MixingWeights>& weights, const Words& words, bool causal) {
  LayerView layer;
  int64_t heads = 0;
  if (!bias.empty()) {
    layer.position_bias = maps_of(bias, causal);
    heads = bias.dim(0);
  }
  for (const MixingWeights& kind : weights) {
    layer.weights.push_back(view_of_weights(kind, words, causal));
    heads = std::max(heads, kind.values.dim(1));
  }
  layer.heads_left_out = static_cast<size_t>(std::max<int64_t>(0, heads - static_cast<int64_t>(most_heads)));
  return layer;
}

/// Pooling `cls` puts a token of the model in front of the text.
void add_first_token(const RunConfig& config, Words& words) {
  if (!facts_of(config.model).begins_with_own) return;
  words.texts.insert(words.texts.begin(), "[cls] ");
  for (size_t& word : words.of_token) ++word;
  words.of_token.insert(words.of_token.begin(), 0);
}

/// Begins and ends with a space, so that it is a separate word.
constexpr const char* between_texts_text = " \u2016 ";

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

}  // namespace

std::vector<int32_t> example_tokens(const DataSource& data, Split split) {
  const Batch batch = data.evaluation(split)->batch(0, 0);
  std::vector<int32_t> tokens;
  for (int64_t t = 0; t < batch.tokens.dim(1) && tokens.size() < most_tokens; ++t)
    if (batch.segment_ids[t] != 0) tokens.push_back(batch.tokens[t]);
  return tokens;
}

std::vector<int32_t> example_tokens(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> tokens = tokenizer.encode(text, "--text");
  if (tokens.empty()) throw Error("--text: the text is empty");
  return tokens;
}

Words words_of(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens) {
  Words words;
  int32_t previous = -1;
  bool after_blank = false;
  for (const int32_t token : tokens) {
    const bool between_texts = token >= tokenizer.vocabulary_size();
    const std::string piece = between_texts ? between_texts_text : tokenizer.piece(token, previous);
    previous = between_texts ? -1 : token;
    const bool blank_first = !piece.empty() && is_blank(piece.front());
    // Word tokenizers give " word"; byte and character tokenizers give the space as a separate token.
    if (words.texts.empty() || (blank_first && piece.size() > 1) || (after_blank && !blank_first))
      words.texts.emplace_back();
    words.texts.back() += piece;
    words.of_token.push_back(words.texts.size() - 1);
    if (!piece.empty()) after_blank = is_blank(piece.back());
  }
  return words;
}

ModelView view_of(const SavedRun& run, std::vector<int32_t> tokens) {
  const RunModel& model = *run.model;
  if (find_model(run.config.model) == nullptr) return {};
  const ModelConfig& config = model_of(run.config);
  const auto limit = static_cast<size_t>(model.position_limit().value_or(most_tokens));
  tokens.resize(std::min({tokens.size(), most_tokens, limit}));
  Words words = words_of(*run.tokenizer, tokens);
  std::vector<std::vector<MixingWeights>> weights(model.stack().blocks().size());
  if (!tokens.empty()) {
    Ids ids(Shape{1, static_cast<int64_t>(tokens.size())});
    std::copy(tokens.begin(), tokens.end(), ids.mutable_data());
    weights = model.model().mixing_weights(ids, Context::evaluation(1, ids.size()));
    add_first_token(run.config, words);
  }
  const bool causal = facts_of(run.config.model).is_causal;
  const std::vector<LayerConfig> layers = expanded_layers(config);
  ModelView view{words.texts, {}, 0};
  for (size_t i = 0; i < layers.size(); ++i) {
    const Array bias = model.stack().blocks()[i].mixer().position_bias(most_positions);
    LayerView layer = view_of_layer(bias, weights[i], words, causal);
    if (layer.position_bias.empty() && layer.weights.empty()) continue;
    layer.name = fmt::format("layer {}: {}", i + 1, mixer_name(layers[i].mixer));
    if (view.layers.size() < most_layers)
      view.layers.push_back(std::move(layer));
    else
      ++view.layers_left_out;
  }
  return view;
}

}  // namespace capstan
