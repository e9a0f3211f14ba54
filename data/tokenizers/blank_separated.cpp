// Tokenizers of words between blanks for generated data: the symbols of ListOps, and plain numbers. The order of
// listops_words is that of the ids and must not change. tests/data/tokenizers/test_tokenizer.cpp.
#include "data/tokenizers/blank_separated.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"

namespace capstan {
namespace {

constexpr std::string_view token_blanks = " \t\r\n";

constexpr std::array<std::string_view, ListOpsTokenizer::size> listops_words = {
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "[MIN", "[MAX", "[MED", "[SM", "]"};

/// Calls body(word, at) for every word between blanks; `at` is its first byte in the text.
template <class Body>
void for_each_blank_separated(std::string_view text, const Body& body) {
  for (size_t at = text.find_first_not_of(token_blanks); at != std::string_view::npos;
       at = text.find_first_not_of(token_blanks, at)) {
    const size_t stop = std::min(text.find_first_of(token_blanks, at), text.size());
    body(text.substr(at, stop - at), at);
    at = stop;
  }
}

/// "file:line:column" of a byte of the text.
std::string place_in_text(const std::string& file, std::string_view text, size_t at) {
  return fmt::format("{}:{}:{}", file, 1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(at), '\n'),
                     at - (text.rfind('\n', at) + 1) + 1);
}

}  // namespace

/// The last place at or before `at` that is not inside a word.
size_t BlankSeparatedTokenizer::boundary(std::string_view text, size_t at) const {
  if (at >= text.size()) return text.size();
  while (at > 0 && token_blanks.find(text[at - 1]) == std::string_view::npos) --at;
  return at;
}

std::vector<int32_t> ListOpsTokenizer::encode(std::string_view text, const std::string& file) const {
  std::vector<int32_t> ids;
  for_each_blank_separated(text, [&](std::string_view word, size_t at) {
    const auto found = std::find(listops_words.begin(), listops_words.end(), word == "X" ? "]" : word);
    if (found != listops_words.end())
      ids.push_back(static_cast<int32_t>(found - listops_words.begin()));
    else if (word != "(" && word != ")")
      throw Error(fmt::format("{}: '{}' is not a token of ListOps; known: 0-9 [MIN [MAX [MED [SM ] ( )",
                              place_in_text(file, text, at), word));
  });
  return ids;
}

std::string ListOpsTokenizer::piece(int32_t id, int32_t previous) const {
  check_id(id);
  return (previous < 0 ? "" : " ") + std::string(listops_words[static_cast<size_t>(id)]);
}

NumberTokenizer::NumberTokenizer(int64_t size) : size_(size) {
  check(size > 0 && size <= std::numeric_limits<int32_t>::max(),
        "number tokenizer: the vocabulary must be positive and below 2^31, got {}", size);
}

std::vector<int32_t> NumberTokenizer::encode(std::string_view text, const std::string& file) const {
  std::vector<int32_t> ids;
  for_each_blank_separated(text, [&](std::string_view word, size_t at) {
    int32_t id = -1;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (problem != std::errc{} || end != word.data() + word.size() || id < 0 || id >= size_)
      throw Error(fmt::format("{}: '{}' is not a number below {}", place_in_text(file, text, at), word, size_));
    ids.push_back(id);
  });
  return ids;
}

std::string NumberTokenizer::piece(int32_t id, int32_t previous) const {
  check_id(id);
  return (previous < 0 ? "" : " ") + std::to_string(id);
}

void NumberTokenizer::save_to(nlohmann::json& json) const { json["size"] = size_; }

}  // namespace capstan
