#include "data/tokenizers/number_tokenizer.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/json.hpp"

namespace capstan {
namespace {

constexpr std::string_view blanks = " \t\r\n";

}  // namespace

NumberTokenizer::NumberTokenizer(int64_t size) : size_(size) {
  check(size > 0, "number tokenizer: the vocabulary must be positive, got {}", size);
}

std::vector<int32_t> NumberTokenizer::encode(std::string_view text, const std::string& file) const {
  std::vector<int32_t> ids;
  for (size_t at = text.find_first_not_of(blanks); at != std::string_view::npos;
       at = text.find_first_not_of(blanks, at)) {
    const size_t stop = std::min(text.find_first_of(blanks, at), text.size());
    const std::string_view word = text.substr(at, stop - at);
    int32_t id = -1;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (problem != std::errc{} || end != word.data() + word.size() || id < 0 || id >= size_)
      throw Error(fmt::format("{}:{}:{}: '{}' is not a number below {}", file,
                              1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(at), '\n'),
                              at - (text.rfind('\n', at) + 1) + 1, word, size_));
    ids.push_back(id);
    at = stop;
  }
  return ids;
}

std::string NumberTokenizer::piece(int32_t id, int32_t previous) const {
  check_id(id);
  return (previous < 0 ? "" : " ") + std::to_string(id);
}

size_t NumberTokenizer::border(std::string_view text, size_t at) const {
  if (at >= text.size()) return text.size();
  while (at > 0 && blanks.find(text[at - 1]) == std::string_view::npos) --at;
  return at;
}

std::string NumberTokenizer::to_json() const { return json_text(nlohmann::json{{"kind", kind()}, {"size", size_}}); }

}  // namespace capstan
