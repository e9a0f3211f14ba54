// What all tokenizers share, and StreamingDecoder, which holds back the bytes of an unfinished UTF-8 character.
// to_json() is saved with runs and in the fingerprint: tests/data/tokenizers/test_tokenizer.cpp.
#include "data/tokenizers/tokenizer.hpp"

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/json.hpp"
#include "core/strings/utf8.hpp"
#include "data/files/token_row.hpp"

namespace capstan {

std::string Tokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string text;
  int32_t previous = -1;
  for (const int32_t id : ids) {
    text += piece(id, previous);
    previous = id;
  }
  return text;
}

std::string Tokenizer::to_json() const {
  nlohmann::json json{{"kind", kind()}};
  save_to(json);
  return json_text(json);
}

std::string Tokenizer::fingerprint() const { return Fingerprint().add(to_json()).hex(); }

void Tokenizer::check_id(int32_t id) const {
  check(id >= 0 && id < vocabulary_size(), "{} tokenizer: id {} is outside the vocabulary of {}", kind(), id,
        vocabulary_size());
}

std::string StreamingDecoder::push(int32_t id) {
  pending_ += tokenizer_->piece(id, previous_);
  previous_ = id;
  return take(false);
}

std::string StreamingDecoder::finish() { return take(true); }

std::string StreamingDecoder::take(bool at_end) {
  std::string text;
  size_t at = 0;
  while (at < pending_.size()) {
    const Utf8Character character = first_character(std::string_view(pending_).substr(at));
    if (character.state == Utf8Character::State::cut_off && !at_end) break;
    if (character.state == Utf8Character::State::valid || invalid_ == InvalidBytes::kept)
      text.append(pending_, at, character.bytes);
    else
      append_utf8(text, 0xfffd);  // U+FFFD, the replacement character
    at += character.bytes;
  }
  pending_.erase(0, at);
  return text;
}

Boundary boundary_of(const Tokenizer& tokenizer) {
  return [&tokenizer](std::string_view text, size_t at) { return tokenizer.boundary(text, at); };
}

}  // namespace capstan
