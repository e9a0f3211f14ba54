// Text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/config/schema.hpp"
#include "data/tokenizers/normalisation.hpp"
#include "data/tokenizers/texts.hpp"

namespace capstan {

/// Immutable once made. Kinds: byte, char, word, sentencepiece, listops, number.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::string kind() const = 0;
  virtual int64_t vocabulary_size() const = 0;

  /// Throws Error "file:line:column: ..." (places within `text`) at what the tokenizer cannot read.
  virtual std::vector<int32_t> encode(std::string_view text, const std::string& file = "text") const = 0;
  /// The text of one token where token `previous` stood before it (-1: nothing).
  /// Throws std::invalid_argument for an id outside the vocabulary.
  virtual std::string piece(int32_t id, int32_t previous) const = 0;
  std::string decode(const std::vector<int32_t>& ids) const;

  /// Must a text be valid UTF-8?
  virtual bool needs_utf8() const = 0;
  /// A position <= `at`, as near as is easily found, where the text may be cut in two without changing its tokens.
  virtual size_t border(std::string_view text, size_t at) const = 0;
  /// The token that stands before a text's first one, so that every token of the text is predicted: a line's end.
  virtual int32_t start_token() const = 0;

  /// One JSON document that from_json() makes the same tokenizer of.
  virtual std::string to_json() const = 0;
  /// Throws Error naming `file` when it is none.
  static std::shared_ptr<const Tokenizer> from_json(const std::string& json, const std::string& file = "tokenizer");
  /// XXH3-128 of to_json().
  std::string fingerprint() const;

 protected:
  void check_id(int32_t id) const;
};

/// Decodes token by token; what it has returned so far is always valid UTF-8. Bytes that cannot become a character are
/// shown as U+FFFD (Tokenizer::decode keeps them as they are).
class StreamingDecoder {
 public:
  explicit StreamingDecoder(std::shared_ptr<const Tokenizer> tokenizer, int32_t previous = -1)
      : tokenizer_(std::move(tokenizer)), previous_(previous) {}
  /// The text that this token completes; may be empty.
  std::string push(int32_t id);
  /// What is left when no token follows.
  std::string finish();

 private:
  std::string take(bool at_end);

  std::shared_ptr<const Tokenizer> tokenizer_;
  int32_t previous_;
  std::string pending_;
};

struct ByteTokenizerConfig {
  static constexpr const char* type_name = "byte";
};
template <class Fields>
void describe(Fields&, ByteTokenizerConfig&) {}

struct CharTokenizerConfig {
  static constexpr const char* type_name = "char";
  Normalisation normalisation = {};
};
template <class Fields>
void describe(Fields& f, CharTokenizerConfig& c) {
  describe_normalisation(f, c.normalisation);
}

/// How WordTokenizer cuts a line into words.
enum class WordSplit { blanks, words };
inline std::vector<EnumName<WordSplit>> enum_names(WordSplit) {
  return {{WordSplit::blanks, "blanks"}, {WordSplit::words, "words"}};
}

struct WordTokenizerConfig {
  static constexpr const char* type_name = "word";
  WordSplit split = WordSplit::blanks;
  bool lower_case = false;
  int64_t max_size = 0;
  int64_t min_count = 1;
  std::string vocabulary;
  Normalisation normalisation = {};
};
template <class Fields>
void describe(Fields& f, WordTokenizerConfig& c) {
  f("split", c.split, any(),
    "blanks: words stand between blanks, as in WikiText; words: runs of letters and digits, every other character "
    "alone");
  f("lower_case", c.lower_case, any(), "turn A-Z into a-z first, and leave other letters alone (case_fold: all)");
  f("max_size", c.max_size, at_least(0),
    "keep at most so many words, the most frequent ones, <unk> and <eos> included; 0 = all");
  f("min_count", c.min_count, at_least(1), "keep words that occur at least so often");
  f("vocabulary", c.vocabulary, any(),
    "file with one word per line, instead of gathering the words of the training text");
  describe_normalisation(f, c.normalisation);
}

enum class SentencePieceType { bpe, unigram };
inline std::vector<EnumName<SentencePieceType>> enum_names(SentencePieceType) {
  return {{SentencePieceType::bpe, "bpe"}, {SentencePieceType::unigram, "unigram"}};
}

struct SentencePieceTokenizerConfig {
  static constexpr const char* type_name = "sentencepiece";
  SentencePieceType model_type = SentencePieceType::bpe;
  int64_t vocabulary_size = 8000;
  std::string model;
  bool byte_fallback = true;
  double character_coverage = 0.9995;
  int64_t training_bytes = 10000000;
  Normalisation normalisation = {};
};
template <class Fields>
void describe(Fields& f, SentencePieceTokenizerConfig& c) {
  f("model_type", c.model_type, any(), "how pieces are learnt: bpe (merging frequent pairs) or unigram");
  f("vocabulary_size", c.vocabulary_size, between(4, 16777216), "pieces to learn, all others included");
  f("model", c.model, any(),
    "a SentencePiece .model file to use as it is: besides, only normalise and case_fold count. Where there is no such "
    "file, the model that is learnt is put there");
  f("byte_fallback", c.byte_fallback, any(),
    "what has no piece is written as its bytes, 256 pieces; otherwise it is one unknown piece");
  f("character_coverage", c.character_coverage, between(0.98, 1),
    "share of the training text whose characters become pieces; lower leaves out rare ones");
  f("training_bytes", c.training_bytes, at_least(1000),
    "learn from so much of the training text at most, taken evenly from all of it");
  describe_normalisation(f, c.normalisation);
}

using TokenizerConfig =
    std::variant<ByteTokenizerConfig, CharTokenizerConfig, WordTokenizerConfig, SentencePieceTokenizerConfig>;

/// Gathers the vocabulary from the training texts where the kind needs one. A SentencePiece model that is trained is
/// also written to config.model, where that names a file.
std::shared_ptr<const Tokenizer> make_tokenizer(const TokenizerConfig& config, const Texts& texts);
/// Does make_tokenizer() look at the texts?
bool learns_from_texts(const TokenizerConfig& config);
/// Must texts be valid UTF-8 for it?
bool needs_utf8(const TokenizerConfig& config);
/// Tokenizer::border() of a tokenizer, which must outlive it.
Border border_of(const Tokenizer& tokenizer);
/// Tokenizer::border() of the tokenizer that make_tokenizer() would make, before there is one.
Border border_of(const TokenizerConfig& config);

}  // namespace capstan
