// Models of SentencePiece from elsewhere, whose tables the library follows without checking them.
// tests/data/tokenizers/test_sentencepiece.cpp and tests/fuzz/fuzz_sentencepiece_model.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace capstan {

/// Throws the Error that says that the file `origin` is no such model or is damaged, why, and what to do.
[[noreturn]] void refuse_sentencepiece_model(const std::string& origin, std::string_view why);

/// What a model holds, as far as another program's format can have it: for exports (run/exports).
struct SentencePieceContent {
  enum class Type { normal = 1, unknown, control, user_defined, unused, byte };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::normal;
  };
  std::vector<Piece> pieces;
  bool is_bpe = false, is_unigram = true;
  bool byte_fallback = false;
  /// Does it change texts before it looks for pieces: with a table, a blank in front, or blanks left out?
  bool changes_texts = false;
};
/// Throws Error "<origin>: ..." unless following the model's tables stays within them: its normalisation is a trie of
/// offsets that the library follows without looking, and scores that are no numbers have no order.
SentencePieceContent sentencepiece_content(std::string_view model, const std::string& origin);

}  // namespace capstan
