#pragma once

#include <string>

#include "data/tokenizers/sentencepiece_tokenizer.hpp"

namespace capstan {

/// A SentencePiece model (the content of a .model file) with config.vocabulary_size pieces: `<unk>`, a line's end, the
/// tab, with byte_fallback all 256 bytes, then what was learnt. One thread, so the same texts give the same model. Of
/// more than config.training_bytes, lines are taken at even distances. Throws ConfigError when the texts do not give so
/// many pieces, or need more.
std::string train_sentencepiece(const SentencePieceTokenizerConfig& config, const Texts& texts);

}  // namespace capstan
