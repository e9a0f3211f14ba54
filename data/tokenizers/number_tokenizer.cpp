#include "data/tokenizers/number_tokenizer.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/json.hpp"
#include "data/tokenizers/blank_separated.hpp"

namespace capstan {

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

size_t NumberTokenizer::boundary(std::string_view text, size_t at) const { return blank_separated_boundary(text, at); }

std::string NumberTokenizer::to_json() const { return json_text(nlohmann::json{{"kind", kind()}, {"size", size_}}); }

}  // namespace capstan
