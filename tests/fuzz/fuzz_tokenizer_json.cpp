// Saved tokenizers of every kind: a line with the tokenizer.json, then a text that it encodes and decodes.
#include "data/tokenizers/tokenizer_kinds.hpp"
#include "tests/fuzz/tokenizers.hpp"

namespace capstan::fuzz {
namespace {

void read_tokenizer(std::string_view input) {
  const std::string json(take(input, input.find('\n')));
  const auto tokenizer = tokenizer_from_json(json, "input");
  const auto again =
      must("a tokenizer that was saved is read", [&] { return tokenizer_from_json(tokenizer->to_json()); });
  require(again->to_json() == tokenizer->to_json(), "a tokenizer that was saved is read as the same");
  take(input, 1);
  use_tokenizer(*tokenizer, input, tokenizer->kind() != "sentencepiece");
}

const Registered tokenizer_json_target("tokenizer_json", read_tokenizer);

}  // namespace
}  // namespace capstan::fuzz
