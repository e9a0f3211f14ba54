// Pieces of words, by Google's SentencePiece (Kudo and Richardson, 2018, arXiv 1808.06226): `tokenizer: sentencepiece`.
// The ids are those of the library, line by line; a run keeps the model in tokenizer.json. One file reads models
// (sentencepiece_model.cpp), one trains them (sentencepiece_training.cpp), one has the class.
// tests/data/tokenizers/test_sentencepiece.cpp and test_sentencepiece_training.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/schema.hpp"
#include "data/tokenizers/tokenizer.hpp"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace capstan {

enum class SentencePieceType { bpe, unigram };
inline std::vector<EnumName<SentencePieceType>> enum_names(SentencePieceType) {
  return {{SentencePieceType::bpe, "bpe"}, {SentencePieceType::unigram, "unigram"}};
}

struct SentencePieceTokenizerConfig {
  static constexpr const char* type_name = "sentencepiece";
  SentencePieceType model_type = SentencePieceType::bpe;
  int64_t vocabulary_size = 8000;
  std::string model;
  int64_t training_bytes = 10000000;  // no key: learn from at most so much of the text, sampled evenly
};
template <class Fields>
void describe(Fields& f, SentencePieceTokenizerConfig& c) {
  f("model_type", c.model_type, any(), "how pieces are learnt");
  f("vocabulary_size", c.vocabulary_size, between(4, 16777216), "number of pieces, special ones included");
  f("model", c.model, any(), "a SentencePiece .model file. If it does not exist, the learnt model is written to it");
}

/// The ids of a SentencePiece model. Each line of a text is encoded on its own, as SentencePiece trains, and followed
/// by the token of a line's end: the model's "\n", its byte 0x0A, its `</s>` or,
/// if it has none of them, its unknown token.
///
/// Models that train_sentencepiece() makes add no blank at the start of a line, keep every blank and have bytes for
/// characters without a piece, so decoding gives the text back (except that U+2581, the blank within SentencePiece,
/// becomes a blank). Their pieces never reach across the beginning of a word, and a line is encoded word by word:
/// the same ids wherever a text is cut. A word of more than 128 KiB is encoded in parts.
class SentencePieceTokenizer final : public Tokenizer {
 public:
  /// `model`: the content of a .model file. Throws Error "<origin>: ..." when it is not a model.
  SentencePieceTokenizer(std::string model, const std::string& origin);
  /// Throws Error naming the file when it is missing or no model.
  static SentencePieceTokenizer from_file(const std::string& path);
  ~SentencePieceTokenizer() override;
  SentencePieceTokenizer(SentencePieceTokenizer&&) noexcept;

  std::string kind() const override { return "sentencepiece"; }
  int64_t vocabulary_size() const override { return static_cast<int64_t>(pieces_.size()); }
  std::vector<int32_t> encode(std::string_view text, const std::string& file = "text") const override;
  /// A byte's token is that byte, the unknown one is shown as U+FFFD, `<s>` and its like as nothing.
  std::string piece(int32_t id, int32_t previous) const override;
  /// The text of a piece; of bytes and special pieces what the model calls them.
  std::string token_name(int32_t id) const override;
  bool needs_utf8() const override { return true; }
  size_t boundary(std::string_view text, size_t at) const override;
  int32_t start_token() const override { return end_of_line_; }
  std::optional<int32_t> unknown_token() const override;

  /// boundary() of the models that train_sentencepiece() makes: before a word's blanks, before and after a line's end.
  static size_t word_boundary(std::string_view text, size_t at);

 protected:
  void save_to(nlohmann::json& json) const override;

 private:
  /// Fill in the members below from the model.
  void learn_pieces(const std::string& origin);
  void learn_manners();
  void encode_line(std::string_view line, std::vector<int32_t>& ids) const;
  void encode_part(std::string_view part, std::vector<int32_t>& ids) const;

  std::string model_;
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
  std::vector<std::string> pieces_;  // by id, as text
  int32_t end_of_line_ = 0;          // id of the token after every line
  bool invents_blank_ = false;       // the model puts a blank before every text
  bool by_words_ = false;            // pieces reach across no word's beginning, and no blank is lost or invented
};

/// A SentencePiece model (the content of a .model file) with config.vocabulary_size pieces: `<unk>`, a line's end, the
/// tab, all 256 bytes, then what was learnt. One thread, so the same texts give the same model.
/// From texts of more than config.training_bytes, evenly spaced lines are taken. Throws ConfigError if the texts give
/// fewer pieces, or need more.
std::string train_sentencepiece(const SentencePieceTokenizerConfig& config, const Texts& texts);

}  // namespace capstan
