#include "serve/tokens/text_offsets.hpp"

#include <algorithm>

#include "core/strings/utf8.hpp"

namespace capstan {
namespace {

int64_t characters_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
}

bool is_blank_at(std::string_view text, size_t at) { return at < text.size() && (text[at] == ' ' || text[at] == '\t'); }

/// The parts of a text that are tokenized apart, by where they end, the last first.
std::vector<size_t> ends_of_units(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<size_t> ends;
  for (size_t end = text.size(); end > 0; end = tokenizer.boundary(text, end - 1)) ends.push_back(end);
  return ends;
}

/// Where a piece is in text[from, end); npos if it is not.
size_t place_of(std::string_view text, size_t from, size_t end, std::string_view piece) {
  const std::string_view part = text.substr(0, end);
  if (part.substr(from, piece.size()) == piece) return from;
  const std::string_view bare = piece.size() > 1 && piece.front() == ' ' ? piece.substr(1) : piece;
  size_t word = from;
  while (word < end && is_blank_at(text, word)) ++word;
  if (part.substr(word, bare.size()) == bare) return word;
  return std::min(part.find(piece, from), part.find(bare, from));
}

/// The bytes in front of each token, unit by unit: none where the units have other tokens than the text.
std::vector<size_t> places_by_units(const Tokenizer& tokenizer, std::string_view text,
                                    const std::vector<int32_t>& tokens) {
  std::vector<size_t> ends = ends_of_units(tokenizer, text), places;
  size_t begin = 0;
  for (auto end = ends.rbegin(); end != ends.rend(); begin = *end, ++end) {
    size_t at = begin > 0 && is_blank_at(text, begin - 1) ? begin - 1 : begin;
    for (const int32_t token : tokenizer.encode(text.substr(begin, *end - begin), "prompt")) {
      const size_t index = places.size();
      if (index == tokens.size() || tokens[index] != token) return {};
      const bool known = tokenizer.unknown_token() != token;
      const std::string piece = known ? tokenizer.piece(token, index > 0 ? tokens[index - 1] : -1) : "";
      const size_t found = known ? place_of(text, at, *end, piece) : std::string_view::npos;
      if (found != std::string_view::npos) {
        places.push_back(found);
        const bool bare = !piece.empty() && piece.front() == ' ' && text.substr(found, 1) != " ";
        at = std::min(*end, found + piece.size() - (bare ? 1 : 0));
        continue;
      }
      at = std::max(at, begin);
      places.push_back(at);
      if (!known && at < *end) at += first_character(text.substr(at, *end - at)).bytes;
    }
  }
  return places.size() == tokens.size() ? places : std::vector<size_t>();
}

}  // namespace

int64_t CharacterCount::add(std::string_view piece) {
  const size_t begin = pending_.size();
  pending_ += piece;
  int64_t before = -1;
  size_t at = 0;
  while (at < pending_.size()) {
    const Utf8Character character = first_character(std::string_view(pending_).substr(at));
    if (before < 0 && at + character.bytes > begin) before = count_;
    if (character.state == Utf8Character::State::cut_off) break;
    at += character.bytes;
    ++count_;
  }
  pending_.erase(0, at);
  return before < 0 ? count_ : before;
}

void CharacterCount::finish() {
  while (!pending_.empty()) {
    pending_.erase(0, first_character(pending_).bytes);
    ++count_;
  }
}

std::vector<int64_t> token_offsets(const Tokenizer& tokenizer, std::string_view text,
                                   const std::vector<int32_t>& tokens) {
  std::vector<int32_t> known;
  for (const int32_t token : tokens)
    if (token < tokenizer.vocabulary_size()) known.push_back(token);
  std::vector<size_t> places;
  if (tokenizer.decode(known) != text) places = places_by_units(tokenizer, text, known);
  std::vector<int64_t> offsets;
  CharacterCount by_pieces;
  int64_t characters = 0;
  size_t counted = 0, next = 0;
  int32_t previous = -1;
  for (const int32_t token : tokens) {
    if (token >= tokenizer.vocabulary_size()) {
      offsets.push_back(places.empty() ? by_pieces.count() : characters);
      previous = -1;
      continue;
    }
    if (next < places.size()) {
      const size_t place = std::max(counted, places[next++]);
      characters += characters_of(text.substr(counted, place - counted));
      counted = place;
      offsets.push_back(characters);
    } else {
      offsets.push_back(by_pieces.add(tokenizer.piece(token, previous)));
    }
    previous = token;
  }
  return offsets;
}

}  // namespace capstan
