// The `model:` part of a configuration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/config/schema.hpp"
#include "nn/blocks/block.hpp"
#include "nn/layers/ngram_config.hpp"

namespace capstan {

enum class Positions { none, learned, sinusoidal, scaled_sinusoidal };

inline std::vector<EnumName<Positions>> enum_names(Positions) {
  return {{Positions::none, "none"},
          {Positions::learned, "learned"},
          {Positions::sinusoidal, "sinusoidal"},
          {Positions::scaled_sinusoidal, "scaled-sinusoidal"}};
}

/// What every model has: tokens -> embedding + positions -> blocks -> final norm.
struct ModelConfig {
  int64_t width = 256;
  int64_t max_length = 256;  // tokens of the longest document; models without a position limit go beyond it
  std::vector<LayerConfig> layers;
  Positions positions = Positions::none;
  NgramEmbeddingConfig ngram_embedding;
  std::optional<double> dropout = 0;
  NormConfig final_norm;
  bool norm_after_post = false;
  bool embedding_norm = false;
  bool share_layers = false;
  std::optional<double> init_stddev;
  bool recompute = false;
};

template <class Fields>
void describe_model(Fields& f, ModelConfig& c) {
  f("width", c.width, between(0, 65536),
    "number of features per token between the blocks (D); 0 = chosen for train.minutes and the amount of text, when a "
    "language model's training begins");
  f("max_length", c.max_length, between(1, 16777216),
    "largest number of tokens in a document; also the size of position tables");
  f("layers", c.layers, any(), "the blocks, from first to last");
  f("positions", c.positions, any(),
    "position vectors added to the embeddings: none, learned, or, without a maximum length, sinusoidal (the embeddings "
    "are multiplied by sqrt(width)) or scaled-sinusoidal (the position vectors, all sines before all cosines, are "
    "multiplied by a learned number; as in FLASH-pytorch)");
  f("ngram_embedding", c.ngram_embedding, any(),
    "hashed n-grams that end at a token, added to its embedding: a cheap way to learn which tokens often occur "
    "together");
  f("dropout", c.dropout, between_below(0, 1),
    "share of elements that are set to zero in training, after the embedding and in every residual branch; null = "
    "chosen together with the width, the larger the more often the text is read");
  f("final_norm", c.final_norm, any(), "normalisation after the last block (left out if that block is post-norm)");
  f("norm_after_post", c.norm_after_post, any(),
    "use final_norm after a last block that is post-norm, too, as torch.nn.TransformerEncoder with a norm does");
  f("embedding_norm", c.embedding_norm, any(), "also normalise the embeddings, in the same way as final_norm");
  f("share_layers", c.share_layers, any(),
    "all blocks use the parameters of the first one (as in Fastformer's paper); `layers` must then have a single "
    "entry, with `repeat`");
  f("init_stddev", c.init_stddev, greater(0),
    "standard deviation of all initial weights of linear layers and embeddings (0.02 in BERT); if unset, it follows "
    "from the fan-in of each layer");
  f("recompute", c.recompute, any(),
    "save memory by keeping only the input of each block and computing the block again in the backward pass");
}

/// The keys whose values are left to train.minutes: "width", "dropout", "ngram_embedding.buckets".
std::vector<std::string> open_keys(const ModelConfig& config);

/// Rules that join several fields: heads that do not divide the width, ...
void validate(const ModelConfig& config, Problems& problems);
/// Throws ConfigError with all problems under `model.`; for configurations that did not come through a reader.
void check_config(const ModelConfig& config);

/// The longest document the model can read, if there is a limit:
/// learned positions, or a mixer with parameters for every position.
std::optional<int64_t> position_limit(const ModelConfig& config);
/// Blocks with `repeat` written out.
std::vector<LayerConfig> expanded_layers(const ModelConfig& config);

/// How the source of a pair (data.type: pairs) is read: each token with those before it, or with all of the source.
enum class PrefixRule { causal, bidirectional };

inline std::vector<EnumName<PrefixRule>> enum_names(PrefixRule) {
  return {{PrefixRule::causal, "causal"}, {PrefixRule::bidirectional, "bidirectional"}};
}

/// The layer that scores the tokens of a vocabulary.
struct OutputConfig {
  bool tied_output = true;
  bool output_bias = false;
};
template <class Fields>
void describe_output(Fields& f, OutputConfig& c) {
  f("tied_output", c.tied_output, any(), "the output layer uses the weights of the embedding");
  f("output_bias", c.output_bias, any(), "a bias for each token in the output layer");
}

struct LanguageModelConfig : ModelConfig, OutputConfig {
  static constexpr const char* type_name = "language-model";
  PrefixRule prefix = PrefixRule::causal;
};

template <class Fields>
void describe(Fields& f, LanguageModelConfig& c) {
  describe_model(f, c);
  describe_output(f, c);
  f("prefix", c.prefix, any(),
    "with data.type pairs: causal = tokens of the source see those before them; bidirectional = they see all of the "
    "source (not with aft-conv, position_bias t5 or a mixer that says that it cannot)");
}

void validate(const LanguageModelConfig& config, Problems& problems);

/// What a masked language model has to predict, and what it reads there instead (Devlin et al. 2019, section 3.1).
struct MaskingConfig {
  double share = 0.15;
  double mask = 0.8, random = 0.1;
  bool whole_words = false;
};
template <class Fields>
void describe(Fields& f, MaskingConfig& c) {
  f("share", c.share, between(0.001, 1), "share of the tokens that are chosen, to be predicted");
  f("mask", c.mask, between(0, 1), "share of the chosen tokens that the model reads as the mask token");
  f("random", c.random, between(0, 1),
    "share of the chosen tokens that the model reads as a random token; the others stay as they are");
  f("whole_words", c.whole_words, any(),
    "choose words instead of tokens: all tokens of a run of letters and digits, or none");
}
inline void validate(const MaskingConfig& c, Problems& problems) {
  if (c.mask + c.random > 1) problems.add("random", "mask and random must not be more than 1 together");
}

struct MaskedLanguageModelConfig : ModelConfig, OutputConfig {
  static constexpr const char* type_name = "masked-language-model";
  MaskingConfig masking;
};

template <class Fields>
void describe(Fields& f, MaskedLanguageModelConfig& c) {
  describe_model(f, c);
  describe_output(f, c);
  f("masking", c.masking, any(), "which tokens are to be predicted from those around them");
}

enum class Pooling { mean, cls, last, attention };

inline std::vector<EnumName<Pooling>> enum_names(Pooling) {
  return {{Pooling::mean, "mean"}, {Pooling::cls, "cls"}, {Pooling::last, "last"}, {Pooling::attention, "attention"}};
}

/// What the loss of an example of class c is multiplied by while training: 1; N / (C n_c), with n_c of the N training
/// examples in class c of C; or one given for each class.
struct EqualClasses {
  static constexpr const char* type_name = "equal";
};
template <class Fields>
void describe(Fields&, EqualClasses&) {}
struct BalancedClasses {
  static constexpr const char* type_name = "balanced";
};
template <class Fields>
void describe(Fields&, BalancedClasses&) {}
struct ListedWeights {
  static constexpr const char* type_name = "listed";
  std::vector<double> weights;
};
template <class Fields>
void describe(Fields& f, ListedWeights& c) {
  f("weights", c.weights, not_empty(), "one non-negative weight per class, in the order of the classes");
}
inline void validate(const ListedWeights& c, Problems& problems) {
  for (size_t i = 0; i < c.weights.size(); ++i)
    if (!(c.weights[i] >= 0)) problems.add("weights." + std::to_string(i), "a weight must not be negative");
}
using ClassWeights = std::variant<EqualClasses, BalancedClasses, ListedWeights>;

struct TextClassifierConfig : ModelConfig {
  static constexpr const char* type_name = "text-classifier";
  bool causal = false;
  Pooling pooling = Pooling::mean;
  NgramConfig ngrams;
  ClassWeights class_weights;
  double label_smoothing = 0;
};

template <class Fields>
void describe(Fields& f, TextClassifierConfig& c) {
  describe_model(f, c);
  f("causal", c.causal, any(),
    "tokens see only those before them, as in a language model whose weights are taken with train.init_from");
  f("pooling", c.pooling, any(),
    "how the tokens of a text are combined into one vector: mean, cls (a learned first token), last (the last token) "
    "or "
    "attention (learned weights)");
  f("ngrams", c.ngrams, any(), "hashed n-grams of the text as features in addition to the blocks");
  f("class_weights", c.class_weights, any(),
    "factor applied to the loss of an example in training: equal (always 1), balanced (inversely proportional to the "
    "number of training examples of its class) or listed. Evaluation reports the loss without weights");
  f("label_smoothing", c.label_smoothing, between_below(0, 1),
    "share of the target that is spread over all classes in training; evaluation reports the loss without it");
}

void validate(const TextClassifierConfig& config, Problems& problems);

/// Of LinearClassifier (models/linear_classifier.hpp) and of how it is solved for (train/linear/fit_linear.hpp).
struct LinearClassifierConfig {
  static constexpr const char* type_name = "linear-classifier";
  std::vector<int64_t> words, characters;  // lengths of n-grams
  bool text_ends = false;
  int64_t min_texts = 0;
  int64_t buckets = 0;
  int64_t folds = 5;
};

template <class Fields>
void describe(Fields& f, LinearClassifierConfig& c) {
  f("words", c.words, any(), "lengths of the n-grams of words, such as [1, 2] for words and pairs of words");
  f("characters", c.characters, any(),
    "lengths of the n-grams of characters within words, such as [2, 3, 4, 5]; the start and the end of a word count as "
    "characters");
  f("text_ends", c.text_ends, any(),
    "count the start and the end of a text as words in n-grams of two or more words, so that its first and last words "
    "are told from others");
  f("min_texts", c.min_texts, between(0, 1000000),
    "leave out n-grams that occur in fewer training texts than this; 0 = 1 if the training texts have fewer than 4 "
    "million n-grams in all, otherwise 2. The number chosen is written to config.yaml");
  f("buckets", c.buckets, between(0, 1 << 24),
    "number of rows in the table of n-grams, a power of two; 0 = four or more per n-gram of the training texts, within "
    "256 MB for all classes. The number chosen is written to config.yaml");
  f("folds", c.folds, between(2, 100),
    "parts of the training data for the cross-validation that chooses strength and weighting of the n-grams; with much "
    "data, only the first parts are held out in turn");
}

void validate(const LinearClassifierConfig& config, Problems& problems);

enum class Predicts { next_token, hidden_tokens, classes };

/// What is known of a model from its configuration, before anything is built: a run asks this, not what type it is.
struct ModelFacts {
  bool classifies() const { return predicts == Predicts::classes; }  // and so the data must have labels

  Predicts predicts = Predicts::next_token;
  bool is_solved = false;                         // weights are solved for in one go, not trained in steps
  bool is_causal = false;                         // each token reads those before it only
  bool takes_labels = true;                       // the data may have labels, needed or not
  bool takes_pairs = false;                       // the data may be pairs
  bool reads_sources = false;                     // the source of a pair is read as a whole
  bool weighs_classes = false;                    // examples of some classes count more than others
  const char* own_token = "";                     // a row of the embedding after those of the vocabulary; empty: none
  bool begins_with_own = false;                   // it is put in front of each text
  const NgramTableConfig* text_ngrams = nullptr;  // of the whole text, beside the blocks; within the configuration
  const char* command = "capstan predict";        // what such a model is for
};

inline ModelFacts facts(const LanguageModelConfig& config) {
  ModelFacts facts;
  facts.is_causal = facts.takes_pairs = true;
  facts.takes_labels = false;
  facts.reads_sources = config.prefix != PrefixRule::causal;
  facts.command = "capstan generate";
  return facts;
}

inline ModelFacts facts(const MaskedLanguageModelConfig&) {
  ModelFacts facts;
  facts.predicts = Predicts::hidden_tokens;
  facts.own_token = "mask";
  return facts;
}

inline ModelFacts facts(const TextClassifierConfig& config) {
  ModelFacts facts;
  facts.predicts = Predicts::classes;
  facts.is_causal = config.causal;
  facts.weighs_classes = !std::holds_alternative<EqualClasses>(config.class_weights);
  facts.begins_with_own = config.pooling == Pooling::cls;
  if (facts.begins_with_own) facts.own_token = "first token";
  facts.text_ngrams = &config.ngrams;
  return facts;
}

inline ModelFacts facts(const LinearClassifierConfig&) {
  ModelFacts facts;
  facts.predicts = Predicts::classes;
  facts.is_solved = true;
  return facts;
}

}  // namespace capstan
