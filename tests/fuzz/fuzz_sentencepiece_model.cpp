// SentencePiece models of any origin, and texts that they encode.
#include "data/tokenizers/sentencepiece_tokenizer.hpp"
#include "tests/fuzz/tokenizers.hpp"

namespace capstan::fuzz {
namespace {

void read_model(std::string_view input) {
  const SentencePieceTokenizer tokenizer(std::string(input), "input");
  use_tokenizer(tokenizer, "Two words, caf\xc3\xa9 \xef\xac\x81 \xe6\xbc\xa2\n  1234\n\n", false);
}

const Registered sentencepiece_model_target("sentencepiece_model", read_model);

}  // namespace
}  // namespace capstan::fuzz
