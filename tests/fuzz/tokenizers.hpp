// What the targets that read tokenizers do with one.
#pragma once

#include <memory>

#include "data/tokenizers/tokenizer.hpp"
#include "tests/fuzz/target.hpp"

namespace capstan::fuzz {

/// Encodes and decodes a text. With `exact`, cuts it at a boundary, too, which must not change the tokens.
inline void use_tokenizer(const Tokenizer& tokenizer, std::string_view text, bool exact) {
  const std::vector<int32_t> ids = tokenizer.encode(text);
  for (const int32_t id : ids) require(id >= 0 && id < tokenizer.vocabulary_size(), "ids are within the vocabulary");
  StreamingDecoder decoder(std::shared_ptr<const Tokenizer>(&tokenizer, [](const Tokenizer*) {}));
  for (const int32_t id : ids) decoder.push(id);
  decoder.finish();
  tokenizer.decode(ids);
  const size_t cut = tokenizer.boundary(text, text.size() / 2);
  require(cut <= text.size(), "a boundary is within the text");
  if (!exact) return;
  std::vector<int32_t> parts = tokenizer.encode(text.substr(0, cut));
  const std::vector<int32_t> rest = tokenizer.encode(text.substr(cut));
  parts.insert(parts.end(), rest.begin(), rest.end());
  require(parts == ids, "a boundary does not change the tokens");
}

}  // namespace capstan::fuzz
