// The stack of models with blocks. Its constructor makes parameters in the order that decides their layout. forward(),
// prefill() and step() differ in the function of a block they call and in where positions and n-grams come from;
// embed(), enter() and finish() are shared, so that decoding agrees with forward(): tests/models/test_decode.cpp.
#include "models/stack.hpp"

#include <algorithm>
#include <cmath>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/ops/ops.hpp"

namespace capstan::CAPSTAN_PRECISION {

namespace {

/// The configuration, after checking it.
const ModelConfig& checked(const ModelConfig& config, const StackShape& shape) {
  check_config(config);
  if (const std::vector<std::string> open = open_keys(config); !open.empty())
    throw ConfigError(
        fmt::format("model.{}: is left open; only capstan train chooses it, for train.minutes", open.front()));
  check(config.width > 0 && config.max_length > 0 && shape.vocabulary > 0,
        "model: width {}, max_length {} and vocabulary {} must be positive", config.width, config.max_length,
        shape.vocabulary);
  return config;
}

}  // namespace

Stack::Stack(const Scope& scope, const ModelConfig& config, const StackShape& shape)
    : config_(checked(config, shape)),
      shape_(shape),
      embed_(scope / "embed",
             {shape.vocabulary, config.width, /*stddev=*/0.02, /*decay=*/true, config.sparse_embedding}),
      dropout_(scope / "embed_dropout", config.dropout.value()) {
  const int64_t longest = config.max_length + shape.extra_length;
  if (!config.ngram_embedding.orders.empty())
    ngrams_ = std::make_unique<NgramEmbedding>(scope / "ngram_embedding", config.ngram_embedding, config.width);
  if (config.positions == Positions::learned)
    positions_ = std::make_unique<Embedding>(scope / "positions",
                                             EmbeddingConfig{longest, config.width, /*stddev=*/0.02, /*decay=*/false});
  if (config.positions == Positions::scaled_sinusoidal)
    position_scale_ = (scope / "positions").param("scale", {1}, init::ones(), {/*decay=*/false});
  if (config.embedding_norm)
    embed_norm_ = std::make_unique<Norm>(scope / "embed_norm", config.final_norm, config.width);

  const std::vector<LayerConfig> layers = expanded_layers(config);
  const double pre_norm_gain = 1 / std::sqrt(2.0 * static_cast<double>(std::max<size_t>(layers.size(), 1)));
  blocks_.reserve(layers.size());
  for (const LayerConfig& layer : layers) {
    const double gain = layer.norm_placement == NormPlacement::pre ? pre_norm_gain : 1;
    const Scope place = scope / "blocks" / static_cast<int64_t>(blocks_.size());
    blocks_.emplace_back(place, MixerShape{config.width, longest, shape.causal, gain, shape.prefix}, layer,
                         config.dropout.value());
    if (ngrams_ && config.ngram_embedding.every_block)
      ngram_gains_.push_back(place.param("ngram_gain", {config.width}, init::zeros(), {/*decay=*/false}));
  }
  if (layers.empty() || layers.back().norm_placement == NormPlacement::pre)
    final_norm_ = std::make_unique<Norm>(scope / "final_norm", config.final_norm, config.width);
}

std::vector<std::string> Stack::forward_only_mixers() const {
  const std::vector<LayerConfig> layers = expanded_layers(config_);
  std::vector<std::string> names;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const char* const name = mixer_name(layers[i].mixer);
    if (blocks_[i].mixer().forward_only() && std::find(names.begin(), names.end(), name) == names.end())
      names.emplace_back(name);
  }
  return names;
}

std::optional<int64_t> Stack::position_limit() const {
  const auto limit = capstan::position_limit(config_);
  return limit ? std::optional<int64_t>(*limit + shape_.extra_length) : std::nullopt;
}

void Stack::check_length(int64_t length) const {
  const auto limit = position_limit();
  if (limit && length > *limit)
    throw Error(fmt::format(
        "model: a document of {} tokens is longer than the {} positions of this model: shorten it, or train a "
        "model with a larger model.max_length",
        length, *limit));
}

Var Stack::embed(const Ids& tokens, const Ids& positions, const Var& ngrams, const Context& context) const {
  Var x = ngrams_ ? embed_(tokens) + ngrams : embed_(tokens);
  switch (config_.positions) {
    case Positions::none:
      break;
    case Positions::learned:
      x = x + (*positions_)(positions);
      break;
    case Positions::sinusoidal:
      x = x * std::sqrt(static_cast<double>(config_.width)) +
          Var(sinusoidal_positions(positions, config_.width, SinusoidOrder::interleaved));
      break;
    case Positions::scaled_sinusoidal:
      x = x + position_scale_ * Var(sinusoidal_positions(positions, config_.width, SinusoidOrder::halves));
      break;
  }
  if (embed_norm_) x = (*embed_norm_)(x);
  return dropout_(x, context);
}

Stack::Input Stack::embed(const Ids& tokens, const Context& context) const {
  const Var ngrams = ngrams_ ? (*ngrams_)(tokens, context) : Var();
  return {embed(tokens, context.segments.positions(), ngrams, context), ngram_gains_.empty() ? Var() : ngrams};
}

void Stack::check_tokens(const Ids& tokens, const Context& context) const {
  check(tokens.shape() == context.segments.ids().shape(), "model: tokens {} and segment ids {} differ in shape",
        tokens.shape(), context.segments.ids().shape());
  check_length(context.segments.longest());
}

std::vector<std::vector<MixingWeights>> Stack::mixing_weights(const Ids& tokens, const Context& context) const {
  check_tokens(tokens, context);
  const TapePause pause;
  std::vector<std::vector<MixingWeights>> layers;
  auto [x, ngrams] = embed(tokens, context);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    x = enter(i, x, ngrams);
    layers.push_back(blocks_[i].mixing_weights(x, context));
    x = blocks_[i].forward(x, context);
  }
  return layers;
}

Var Stack::forward(const Ids& tokens, const Context& context) const {
  check_tokens(tokens, context);
  auto [x, ngrams] = embed(tokens, context);
  if (!config_.recompute) {
    for (size_t i = 0; i < blocks_.size(); ++i) x = blocks_[i].forward(enter(i, x, ngrams), context);
    return finish(x);
  }
  const auto shared = std::make_shared<const Context>(context);  // the tape outlives this call
  for (size_t i = 0; i < blocks_.size(); ++i) x = blocks_[i].forward_recomputed(enter(i, x, ngrams), shared);
  return finish(x);
}

Stack::Input Stack::embed_next(const Ids& tokens, const Ids& positions, DecodeState& state,
                               DecodeContext* decode) const {
  const Var ngrams = ngrams_ ? ngrams_->next(tokens, state.recent, decode) : Var();
  const Var x = embed(tokens, positions, ngrams, Context{});
  return {x, ngram_gains_.empty() ? Var() : ngrams};
}

void Stack::remember(const Ids& tokens, DecodeState& state) const {
  if (!ngrams_) return;
  const int64_t length = tokens.dim(1);
  const auto longest = static_cast<size_t>(ngrams_->memory());
  for (int64_t row = 0; row < tokens.dim(0); ++row) {
    std::vector<int32_t>& recent = state.recent[static_cast<size_t>(row)];
    recent.insert(recent.end(), tokens.data() + row * length, tokens.data() + (row + 1) * length);
    if (recent.size() > longest) recent.erase(recent.begin(), recent.end() - static_cast<std::ptrdiff_t>(longest));
  }
}

DecodeState Stack::make_state(int64_t batch, DecodeWeights weights) const {
  check(batch > 0, "model: a decode state needs at least one sequence, not {}", batch);
  DecodeState state;
  state.positions.resize(static_cast<size_t>(batch), 0);
  if (ngrams_) state.recent.resize(static_cast<size_t>(batch));
  state.decode = std::make_shared<DecodeContext>(weights);
  for (const Block& block : blocks_) {
    state.layers.push_back(block.make_state(batch));
    state.layers.back()->share(state.decode);
  }
  return state;
}

Var Stack::prefill(const Ids& tokens, DecodeState& state) const {
  check(tokens.rank() == 2 && tokens.dim(0) == state.batch(), "model: prefill tokens {} do not fit {} sequences",
        tokens.shape(), state.batch());
  const int64_t length = tokens.dim(1), position = state.positions.front();
  for (const int64_t other : state.positions)
    check(other == position, "model: prefill of sequences at positions {} and {}", position, other);
  check_length(position + length);
  state.check_whole();
  const TapePause pause;
  auto [x, ngrams] = embed_next(tokens, positions_from(position, tokens.dim(0), length), state, nullptr);
  state.between_layers = true;
  for (size_t i = 0; i < blocks_.size(); ++i) x = blocks_[i].prefill(enter(i, x, ngrams), *state.layers[i]);
  Var y = finish(x);
  remember(tokens, state);
  for (int64_t& seen : state.positions) seen += length;
  state.between_layers = false;
  return y;
}

Var Stack::step(const Ids& tokens, DecodeState& state) const {
  const int64_t rows = tokens.size();
  check(tokens.rank() == 1 && rows > 0 && rows <= state.batch(),
        "model: step tokens {} are not (n) for the first n of {} sequences", tokens.shape(), state.batch());
  const auto end = state.positions.begin() + rows;
  check_length(*std::max_element(state.positions.begin(), end) + 1);
  state.check_whole();
  const TapePause pause;
  const Ids positions = first_positions(state.positions, rows).reshape({rows, 1});
  auto [x, ngrams] = embed_next(tokens.reshape({rows, 1}), positions, state, state.decode.get());
  x = reshape(x, {rows, config_.width});
  if (ngrams) ngrams = reshape(ngrams, {rows, config_.width});
  state.between_layers = true;
  for (size_t i = 0; i < blocks_.size(); ++i) x = blocks_[i].step(enter(i, x, ngrams), *state.layers[i]);
  Var y = finish(x);
  remember(tokens.reshape({rows, 1}), state);
  std::for_each(state.positions.begin(), end, [](int64_t& seen) { ++seen; });
  state.between_layers = false;
  return y;
}

TokenOutput::TokenOutput(const Scope& scope, const Stack& stack, const OutputConfig& config, int64_t vocabulary)
    : stack_(stack) {
  if (config.tied_output)
    scope.store().alias((scope / "output" / "weight").path(), (scope / "embed" / "weight").path());
  else
    own_ = std::make_unique<Linear>(scope / "output",
                                    LinearConfig{stack.config().width, vocabulary, /*bias=*/false, 1, /*output=*/true});
  if (config.output_bias) bias_ = (scope / "output").param("bias", {weight().dim(0)}, init::zeros(), {/*decay=*/false});
}

}  // namespace capstan::CAPSTAN_PRECISION
