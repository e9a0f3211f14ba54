#include "serve/tokens/token_lists.hpp"

#include <nlohmann/json.hpp>

#include "core/strings/utf8.hpp"

namespace capstan {

using nlohmann::ordered_json;

namespace {

constexpr std::array<const char*, 4> names_of_lists{"tokens", "token_logprobs", "top_logprobs", "text_offset"};
constexpr int64_t number_bytes = 21, offset_bytes = 7;  // with a comma or colon

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

}  // namespace capstan
