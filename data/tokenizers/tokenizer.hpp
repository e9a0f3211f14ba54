// Text to token ids and back: the interface of all tokenizers (docs/adding.md adds one), decoding token by token, and
// the tokenizer of bytes. A run saves its tokenizer as JSON and compares the fingerprint, so neither may change for an
// existing kind: tests/data/tokenizers/test_tokenizer.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/tokenizers/texts.hpp"

namespace capstan {

/// Immutable once made, so any number of threads may use it. Its kinds are listed in tokenizer_kinds.hpp.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// The name of the kind of tokenizer in tokenizer.json.
  virtual std::string kind() const = 0;
  virtual int64_t vocabulary_size() const = 0;

  /// Throws Error "file:line:column: ..." (places within `text`) at what the tokenizer cannot read.
  virtual std::vector<int32_t> encode(std::string_view text, const std::string& file = "text") const = 0;
  /// The text of one token that follows token `previous` (-1: none).
  /// Throws std::invalid_argument for an id outside the vocabulary.
  virtual std::string piece(int32_t id, int32_t previous) const = 0;
  /// A name by which a token can be found in other vocabularies: its text, unless that says too little.
  virtual std::string token_name(int32_t id) const { return piece(id, -1); }
  std::string decode(const std::vector<int32_t>& ids) const;

  /// Must a text be valid UTF-8?
  virtual bool needs_utf8() const = 0;
  /// A position <= `at`, as near as is easily found, where the text may be cut in two without changing its tokens.
  virtual size_t boundary(std::string_view text, size_t at) const = 0;
  /// Is a token a byte, so that the pieces of a text are the text itself?
  virtual bool tokens_are_bytes() const { return false; }
  /// The token in front of a text's first one, so that every token of the text is predicted: the end of a line.
  virtual int32_t start_token() const = 0;

  /// The token of all text that the vocabulary does not cover; none if it covers every text.
  virtual std::optional<int32_t> unknown_token() const { return std::nullopt; }

  /// One JSON document from which tokenizer_from_json() makes the same tokenizer.
  std::string to_json() const;
  /// XXH3-128 of to_json().
  std::string fingerprint() const;

 protected:
  void check_id(int32_t id) const;
  /// Adds to `json` all that, besides the kind, is needed to make an equal tokenizer.
  virtual void save_to(nlohmann::json& json) const = 0;
};

/// What becomes of bytes that are no character: they are shown as U+FFFD, or kept, as Tokenizer::decode does.
enum class InvalidBytes { replaced, kept };

/// Decodes token by token. It returns whole characters; unless invalid bytes are kept, the text is always UTF-8.
class StreamingDecoder {
 public:
  explicit StreamingDecoder(std::shared_ptr<const Tokenizer> tokenizer, int32_t previous = -1,
                            InvalidBytes invalid = InvalidBytes::replaced)
      : tokenizer_(std::move(tokenizer)), previous_(previous), invalid_(invalid) {}
  /// The text that this token completes; may be empty.
  std::string push(int32_t id);
  /// The rest of the text, after the last token.
  std::string finish();

 private:
  std::string take(bool at_end);

  std::shared_ptr<const Tokenizer> tokenizer_;
  int32_t previous_;
  InvalidBytes invalid_;
  std::string pending_;
};

/// Tokenizer::boundary() of a tokenizer, which must outlive it.
Boundary boundary_of(const Tokenizer& tokenizer);

struct ByteTokenizerConfig {
  static constexpr const char* type_name = "byte";
};
template <class Fields>
void describe(Fields&, ByteTokenizerConfig&) {}

/// 256 ids, the values of the bytes. Reads anything.
class ByteTokenizer final : public Tokenizer {
 public:
  std::string kind() const override { return "byte"; }
  int64_t vocabulary_size() const override { return 256; }
  std::vector<int32_t> encode(std::string_view text, const std::string& = "text") const override {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
    return {bytes, bytes + text.size()};
  }
  std::string piece(int32_t id, int32_t) const override {
    check_id(id);
    return std::string(1, static_cast<char>(id));
  }
  bool needs_utf8() const override { return false; }
  size_t boundary(std::string_view text, size_t at) const override { return at < text.size() ? at : text.size(); }
  bool tokens_are_bytes() const override { return true; }
  int32_t start_token() const override { return '\n'; }

 protected:
  void save_to(nlohmann::json&) const override {}
};

}  // namespace capstan
