// Offsets count the characters of the tokens' pieces. tests/serve/test_endpoints.cpp ("text_offset is where a token
// begins, ...").
#include "serve/tokens/token_lists.hpp"

#include <nlohmann/json.hpp>

#include "core/strings/utf8.hpp"

namespace capstan {

using nlohmann::ordered_json;

namespace {

constexpr std::array<const char*, 4> names_of_lists{"tokens", "token_logprobs", "top_logprobs", "text_offset"};

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

std::string text_of_tokens(const SavedRun& run, const std::vector<int32_t>& tokens, size_t first) {
  std::vector<int32_t> known;
  for (size_t i = first; i < tokens.size(); ++i)
    if (tokens[i] < run.tokenizer->vocabulary_size()) known.push_back(tokens[i]);
  return run.tokenizer->decode(known);
}

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

void TokenLists::set_previous(const SavedRun& run, int32_t token) {
  previous_ = token < run.tokenizer->vocabulary_size() ? token : -1;
}

void TokenLists::go_on_after(const TokenLists& front) {
  characters_ = front.characters_;
  characters_.finish();
  previous_ = front.previous_;
}

void TokenLists::add(const SavedRun& run, int32_t token, const ScoredToken* scored) {
  const bool known = token < run.tokenizer->vocabulary_size();
  const int64_t offset = characters_.add(known ? run.tokenizer->piece(token, previous_) : "");
  const std::string name = token_text(run, token, previous_);
  ordered_json likeliest;
  if (scored != nullptr) {
    likeliest = ordered_json::object();
    for (const auto& [other, value] : scored->likeliest) likeliest[token_text(run, other, previous_)] = value;
    likeliest[name] = scored->log_probability;
  }
  const std::array<ordered_json, 4> values{
      name, scored != nullptr ? ordered_json(scored->log_probability) : ordered_json(nullptr), std::move(likeliest),
      offset};
  for (size_t i = 0; i < values.size(); ++i) {
    if (!lists_[i].empty()) lists_[i] += ',';
    lists_[i] += values[i].dump();
  }
  set_previous(run, token);
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

}  // namespace capstan
