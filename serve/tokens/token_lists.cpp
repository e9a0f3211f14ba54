// Offsets count the characters of pieces as long as the pieces are the text. Where they are not (unknown or normalised
// text), each part of the text that is tokenized apart is tokenized again, and its pieces are looked for in that part.
// tests/serve/test_endpoints.cpp ("text_offset is where a token begins, ...").
#include "serve/tokens/token_lists.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/strings/utf8.hpp"

namespace capstan {

using nlohmann::ordered_json;

namespace {

constexpr std::array<const char*, 4> names_of_lists{"tokens", "token_logprobs", "top_logprobs", "text_offset"};
constexpr int64_t number_bytes = 21, offset_bytes = 7;  // of a double and of an offset in JSON, with a comma or colon

}  // namespace

std::string token_text(const SavedRun& run, int32_t token, int32_t previous) {
  if (token >= run.tokenizer->vocabulary_size())
    return end_of_document(run) == token ? "<|endoftext|>" : "<|separator|>";
  std::string piece = run.tokenizer->piece(token, previous);
  if (is_utf8(piece)) return piece;
  std::string shown = "bytes:";
  for (const unsigned char c : piece) shown += fmt::format("\\x{:02x}", c);
  return shown;
}

int64_t json_bytes(std::string_view text) {
  int64_t bytes = 0;
  for (const unsigned char c : text) bytes += c < ' ' ? 6 : c == '"' || c == '\\' ? 2 : 1;
  return bytes;
}

int64_t mean_name_bytes(const SavedRun& run) {
  const int64_t size = run.tokenizer->vocabulary_size(), stride = 1 + size / 4096;
  int64_t bytes = 0, count = 0;
  for (int64_t token = 0; token < size; token += stride, ++count)
    bytes += json_bytes(token_text(run, static_cast<int32_t>(token), -1));
  return count == 0 ? 0 : bytes / count + 1;
}

void TokenLists::add(const SavedRun& run, int32_t token, int32_t previous, int64_t offset, const ScoredToken* scored) {
  const std::string name = token_text(run, token, previous);
  ordered_json likeliest;
  if (scored != nullptr) {
    likeliest = ordered_json::object();
    for (const auto& [other, value] : scored->likeliest) likeliest[token_text(run, other, previous)] = value;
    likeliest[name] = scored->log_probability;
  }
  const std::array<ordered_json, 4> values{
      name, scored != nullptr ? ordered_json(scored->log_probability) : ordered_json(nullptr), std::move(likeliest),
      offset};
  for (size_t i = 0; i < values.size(); ++i) {
    if (!lists_[i].empty()) lists_[i] += ',';
    lists_[i] += values[i].dump();
  }
}

int64_t TokenLists::bytes() const {
  int64_t bytes = 0;
  for (const std::string& list : lists_) bytes += static_cast<int64_t>(list.size());
  return bytes;
}

void TokenLists::append_to(std::string& json, const TokenLists& front) const {
  for (size_t i = 0; i < lists_.size(); ++i) {
    json += fmt::format("{}\"{}\":[", i == 0 ? '{' : ',', names_of_lists[i]);
    json += front.lists_[i];
    if (!front.empty() && !empty()) json += ',';
    json += lists_[i];
    json += ']';
  }
  json += '}';
}

int64_t TokenLists::bytes_of_token(int64_t likeliest, int64_t name_bytes) {
  const int64_t pair = name_bytes + 3 + number_bytes;
  return name_bytes + 3 + number_bytes + offset_bytes + 3 + (likeliest + 1) * pair;
}

namespace {

int64_t characters_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
}

bool is_blank_at(std::string_view text, size_t at) { return at < text.size() && (text[at] == ' ' || text[at] == '\t'); }

/// Where the parts of a text end that are tokenized apart, the last part first.
std::vector<size_t> ends_of_units(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<size_t> ends;
  for (size_t end = text.size(); end > 0; end = tokenizer.boundary(text, end - 1)) ends.push_back(end);
  return ends;
}

/// Where a piece is in text[from, end), without its leading space if the text has another blank there; npos: nowhere.
size_t place_of(std::string_view text, size_t from, size_t end, std::string_view piece) {
  const std::string_view part = text.substr(0, end);
  if (part.substr(from, piece.size()) == piece) return from;
  const std::string_view bare = piece.size() > 1 && piece.front() == ' ' ? piece.substr(1) : piece;
  size_t word = from;
  while (word < end && is_blank_at(text, word)) ++word;
  if (part.substr(word, bare.size()) == bare) return word;
  return std::min(part.find(piece, from), part.find(bare, from));
}

/// The bytes in front of each token, found part by part; empty where the parts have other tokens than the text.
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
      const size_t place = known ? place_of(text, at, *end, piece) : std::string_view::npos;
      if (place != std::string_view::npos) {
        places.push_back(place);
        const bool bare = !piece.empty() && piece.front() == ' ' && text.substr(place, 1) != " ";
        at = std::min(*end, place + piece.size() - (bare ? 1 : 0));
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
