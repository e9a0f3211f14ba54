// What of a SentencePiece model its library takes on trust.
#pragma once

#include <string>
#include <string_view>

namespace capstan {

/// Throws Error: the file `origin` is not such a model or is damaged, why, and what to do.
[[noreturn]] void refuse_sentencepiece_model(const std::string& origin, std::string_view why);

/// Throws Error "<origin>: ..." unless following the model's tables stays within them: its normalisation is a trie of
/// offsets that the library follows without looking, and scores that are no numbers have no order.
void check_sentencepiece_model(std::string_view model, const std::string& origin);

}  // namespace capstan
