// The stack that models share: embedding, positions, blocks, final norm; and the layer that scores tokens. Each type of
// model with blocks has one; models/generation and serve use its decode states. tests/models/test_wiring.cpp checks the
// wiring, tests/models/test_decode.cpp that decoding agrees with forward().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/schema.hpp"
#include "models/config.hpp"
#include "nn/blocks/block.hpp"
#include "nn/layers/ngram_embedding.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// What a generation remembers between its tokens: B sequences, each at a position of its own, and from the first step
/// on the weights, packed for decoding. Make a new state when weights have changed.
struct DecodeState {
  std::vector<int64_t> positions;            // tokens seen, of each sequence
  std::vector<std::vector<int32_t>> recent;  // of each sequence, for n-grams: the last tokens, the newest last
  std::vector<std::unique_ptr<MixerState>> layers;
  std::shared_ptr<DecodeContext> decode;  // shared by the layers
  bool between_layers = false;            // a call threw after some layers had moved on: only reset() helps

  int64_t batch() const { return static_cast<int64_t>(positions.size()); }
  /// Sets all sequences back to their first position.
  void reset();
  /// Throws Error after a call that threw when only some layers had read its tokens (between_layers).
  void check_whole() const;
  /// From now on sequence i is a copy of what sequence rows[i] was; their number may change.
  void select(const std::vector<int64_t>& rows);
  /// Sequence `to` becomes a copy of sequence `row` of `from`, a state of the same model, maybe this one. No other
  /// sequence moves: a text that has been read apart joins the others, and the last takes the place of one that is
  /// done.
  void copy(int64_t to, DecodeState& from, int64_t row);
  /// From now on this state multiplies with the packed weights of `other`, a state of the same model.
  void share(const DecodeState& other);
};

/// What a stack needs in addition to its configuration.
struct StackShape {
  int64_t vocabulary = 0;
  bool causal = false;
  int64_t extra_length = 0;  // positions beyond max_length, for tokens that the model adds itself
  bool prefix = false;       // MixerShape::prefix
};

/// tokens (B, T) -> states (B, T, D).  x = embed[token] + n-grams? + position, norm?, dropout; blocks; final norm. With
/// ngram_embedding.every_block, block i reads x + g_i * n-grams, where g_i is blocks.i.ngram_gain (D), which starts at
/// 0. Positions count within documents. With sinusoidal positions the embedding is multiplied by sqrt(D) (Vaswani et
/// al. 2017, section 3.4); they are not trained. With scaled-sinusoidal ones it is not, and they are multiplied by
/// positions.scale (1). A stack whose last block is post-norm has no final norm unless norm_after_post asks for it. The
/// last projections of pre-norm blocks start scaled by 1 / sqrt(2 blocks). Parameters embed.weight (V, D),
/// ngram_embedding, positions.weight (max_length, D), embed_norm, blocks.N, final_norm.
/// Throws ConfigError for a configuration that contradicts itself.
class Stack {
 public:
  Stack(const Scope& scope, const ModelConfig& config, const StackShape& shape);

  /// Throws std::invalid_argument when the tokens do not have the context's shape, and Error when a document is longer
  /// than the number of positions of the model.
  Var forward(const Ids& tokens, const Context& context) const;

  /// The mixing weights of every block (nn/mixer/mixer.hpp). No gradients.
  std::vector<std::vector<MixingWeights>> mixing_weights(const Ids& tokens, const Context& context) const;

  DecodeState make_state(int64_t batch, DecodeWeights weights = DecodeWeights::float32) const;
  /// The next T tokens of every sequence: (B, T) -> (B, T, D), after any number of others, the same for all. No
  /// gradients.
  Var prefill(const Ids& tokens, DecodeState& state) const;
  /// The next tokens of the first n sequences, (n) -> (n, D). A row has the same bits alone and among others.
  Var step(const Ids& tokens, DecodeState& state) const;

  const ModelConfig& config() const { return config_; }
  const StackShape& shape() const { return shape_; }
  const Var& embedding_weight() const { return embed_.weight(); }
  const std::vector<Block>& blocks() const { return blocks_; }
  /// The names of this stack's mixers that define forward() only, each once; such mixers decode slowly.
  std::vector<std::string> forward_only_mixers() const;
  /// The longest document the stack can read, if there is a limit.
  std::optional<int64_t> position_limit() const;

 private:
  /// Embedding, positions, norm and dropout: what the first block reads. positions: (B, T) as the tokens; ngrams: added
  /// to the embedding, undefined in a model without n-grams.
  Var embed(const Ids& tokens, const Ids& positions, const Var& ngrams, const Context& context) const;
  /// What the blocks read: (B, T, D). `ngrams` is undefined unless every block reads them.
  struct Input {
    Var x, ngrams;
  };
  Input embed(const Ids& tokens, const Context& context) const;
  /// What the blocks read of the next tokens of a generation, whose n-grams reach back to state.recent. tokens,
  /// positions: (n, T). `decode`: the packed weights of a step; null in prefill().
  Input embed_next(const Ids& tokens, const Ids& positions, DecodeState& state, DecodeContext* decode) const;
  /// x as the block with this number reads it.
  Var enter(size_t block, const Var& x, const Var& ngrams) const {
    return ngram_gains_.empty() ? x : x + ngram_gains_[block] * ngrams;
  }
  /// Adds the tokens to state.recent, which n-grams of later tokens need.
  void remember(const Ids& tokens, DecodeState& state) const;
  void check_tokens(const Ids& tokens, const Context& context) const;
  Var finish(const Var& x) const { return final_norm_ ? (*final_norm_)(x) : x; }
  void check_length(int64_t length) const;

  ModelConfig config_;
  StackShape shape_;
  Embedding embed_;
  std::unique_ptr<NgramEmbedding> ngrams_;
  std::unique_ptr<Embedding> positions_;
  Var position_scale_;
  std::unique_ptr<Norm> embed_norm_;
  Dropout dropout_;
  std::vector<Block> blocks_;
  std::vector<Var> ngram_gains_;  // of each block; empty: n-grams are part of the embedding only
  std::unique_ptr<Norm> final_norm_;
};

}  // namespace capstan::CAPSTAN_PRECISION

namespace capstan {

/// Configures the layer that scores every token of the vocabulary.
struct OutputConfig {
  bool tied_output = true;
  bool output_bias = false;
};
template <class Fields>
void describe_output(Fields& f, OutputConfig& c) {
  f("tied_output", c.tied_output, any(), "the output layer uses the weights of the embedding");
  f("output_bias", c.output_bias, any(), "a bias for each token in the output layer");
}
/// Refuses an output layer whose gradient has all rows of an embedding that is updated by rows.
inline void validate_output(const ModelConfig& model, const OutputConfig& output, Problems& problems) {
  if (model.sparse_embedding && output.tied_output)
    problems.add("sparse_embedding", "the output layer uses all rows of the embedding: set tied_output: false");
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

/// logits = states W^T + b. W is embed.weight (tied; output.weight is then another name of it) or output.weight (V, D);
/// b is output.bias (V), if there is one.
class TokenOutput {
 public:
  /// `stack` is in `scope` and must outlive it.
  TokenOutput(const Scope& scope, const Stack& stack, const OutputConfig& config, int64_t vocabulary);
  TokenOutput(const TokenOutput&) = delete;
  TokenOutput& operator=(const TokenOutput&) = delete;

  const Var& weight() const { return own_ ? own_->weight() : stack_.embedding_weight(); }
  const Var& bias() const { return bias_; }
  bool tied() const { return !own_; }

 private:
  const Stack& stack_;
  std::unique_ptr<Linear> own_;
  Var bias_;
};

}  // namespace capstan::CAPSTAN_PRECISION
