// The `model:` part of a configuration that all models with blocks share, and ModelFacts: what run/, train/ and apps/
// may know of a model without knowing its type. Keys are documented in docs/configuration.md;
// tests/models/test_wiring.cpp and test_training.cpp hold what they do and what is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/config/schema.hpp"
#include "models/losses/class_weights.hpp"
#include "nn/blocks/block.hpp"
#include "nn/layers/ngram_config.hpp"

namespace capstan {

/// Which position vectors a model adds to the embeddings of tokens.
enum class Positions { none, learned, sinusoidal, scaled_sinusoidal };

inline std::vector<EnumName<Positions>> enum_names(Positions) {
  return {{Positions::none, "none"},
          {Positions::learned, "learned"},
          {Positions::sinusoidal, "sinusoidal"},
          {Positions::scaled_sinusoidal, "scaled-sinusoidal"}};
}

/// Options of every model with blocks: tokens -> embedding + positions -> blocks -> final norm.
struct ModelConfig {
  int64_t width = 256;
  int64_t max_length = 256;  // tokens of the longest document; models without a position limit go beyond it
  std::vector<LayerConfig> layers;
  Positions positions = Positions::none;
  NgramEmbeddingConfig ngram_embedding;
  std::optional<double> dropout = 0;
  NormConfig final_norm;
  bool embedding_norm = false;
  bool sparse_embedding = false;
  bool recompute = false;
};

template <class Fields>
void describe_model(Fields& f, ModelConfig& c) {
  f("width", c.width, between(0, 65536),
    "features per token between the blocks (D); 0 = chosen for train.minutes and the text, when a language model's "
    "training begins");
  f("max_length", c.max_length, between(1, 16777216),
    "largest number of tokens in a document; also the size of position tables");
  f("layers", c.layers, any(), "the blocks, from first to last; [] = none: a bag of tokens");
  f("positions", c.positions, any(),
    "position vectors added to the embeddings. Sinusoidal ones have no maximum length: sinusoidal multiplies the "
    "embeddings by sqrt(width), scaled-sinusoidal the position vectors by a learned number (FLASH-pytorch)");
  f("ngram_embedding", c.ngram_embedding, any(), "hashed n-grams that end at a token, added to its embedding");
  f("dropout", c.dropout, between_below(0, 1),
    "share of elements set to zero in training, after the embedding and in every residual branch; null = chosen "
    "by the plan for train.minutes, from the passes over the text");
  f("final_norm", c.final_norm.type, any(), "normalisation after the last block (left out if that block is post-norm)");
  f("embedding_norm", c.embedding_norm, any(), "also normalise the embeddings, in the same way as final_norm");
  f("sparse_embedding", c.sparse_embedding, any(),
    "update only the rows of tokens that a step has read, as nn.Embedding(sparse=True) with SparseAdam in PyTorch: a "
    "step does not take longer for a larger vocabulary");
  f("recompute", c.recompute, any(),
    "save memory: keep only what mixers and feed-forward networks read, and compute the rest again in the backward "
    "pass");
}

/// The keys whose values are left to train.minutes: "width", "dropout", "ngram_embedding.buckets".
std::vector<std::string> open_keys(const ModelConfig& config);
/// Sets the keys that `open` leaves open (open_keys()) to the values of the configuration `saved`.
template <class Config>
void take_choices(const Config& saved, Config& open) {
  if constexpr (std::is_base_of_v<ModelConfig, Config>) {
    if (open.width == 0) open.width = saved.width;
    if (!open.dropout) open.dropout = saved.dropout;
    if (open.ngram_embedding.buckets == 0) open.ngram_embedding.buckets = saved.ngram_embedding.buckets;
  }
}

/// Adds problems of rules that span several fields, such as heads that do not divide the width.
void validate(const ModelConfig& config, Problems& problems);
/// Throws ConfigError with all problems under `model.`; for configurations made in code, which no reader has checked.
void check_config(const ModelConfig& config);

/// The longest document the model can read, if there is a limit:
/// learned positions, or a mixer with parameters for every position.
std::optional<int64_t> position_limit(const ModelConfig& config);
/// Blocks with `repeat` written out.
std::vector<LayerConfig> expanded_layers(const ModelConfig& config);

/// What a model predicts: the token after each, tokens that are hidden from it, or the classes of a text.
enum class Predicts { next_token, hidden_tokens, classes };

/// What a configuration says about a model before it is built. run/ and train/ ask these facts, not the model's type.
struct ModelFacts {
  bool classifies() const { return predicts == Predicts::classes; }  // then the data must have labels

  Predicts predicts = Predicts::next_token;
  bool is_solved = false;                       // a solver computes the weights, without training steps
  bool reads_texts = false;                     // a classifier of texts that are not tokenised
  bool is_causal = false;                       // each token reads only the preceding ones
  bool takes_labels = true;                     // the data may have labels, needed or not
  bool takes_pairs = false;                     // the data may be pairs
  bool reads_sources = false;                   // tokens of a pair's source see all of the source
  const ClassWeights* class_weights = nullptr;  // a classifier's weights of classes in the loss; null: not one
  const char* own_token = "";                   // a row of the embedding after those of the vocabulary; empty: none
  bool begins_with_own = false;                 // own_token precedes each text
  const NgramConfig* text_ngrams = nullptr;     // n-grams beside the blocks; part of the configuration
  const char* command = "capstan predict";      // the command that uses such a model
  std::vector<std::string> searched = {};       // keys and values that a search tries: "words=[[1], [1, 2]]"
};
/// The facts that all models with blocks share: a type of model begins with them and adds its own.
ModelFacts stack_facts(const ModelConfig& config);

}  // namespace capstan
