#include "data/tokenizers/listops_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/json.hpp"

namespace capstan {
namespace {

constexpr std::array<std::string_view, ListOpsTokenizer::size> words = {
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "[MIN", "[MAX", "[MED", "[SM", "]"};

constexpr std::string_view blanks = " \t\r\n";

}  // namespace

std::vector<int32_t> ListOpsTokenizer::encode(std::string_view text, const std::string& file) const {
  std::vector<int32_t> ids;
  for (size_t at = text.find_first_not_of(blanks); at != std::string_view::npos;
       at = text.find_first_not_of(blanks, at)) {
    const size_t stop = std::min(text.find_first_of(blanks, at), text.size());
    const std::string_view word = text.substr(at, stop - at);
    const auto found = std::find(words.begin(), words.end(), word == "X" ? "]" : word);
    if (found != words.end())
      ids.push_back(static_cast<int32_t>(found - words.begin()));
    else if (word != "(" && word != ")")
      throw Error(fmt::format("{}:{}:{}: '{}' is not a token of ListOps; known: 0-9 [MIN [MAX [MED [SM ] ( )", file,
                              1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(at), '\n'),
                              at - (text.rfind('\n', at) + 1) + 1, word));
    at = stop;
  }
  return ids;
}

std::string ListOpsTokenizer::piece(int32_t id, int32_t previous) const {
  check_id(id);
  return (previous < 0 ? "" : " ") + std::string(words[static_cast<size_t>(id)]);
}

size_t ListOpsTokenizer::border(std::string_view text, size_t at) const {
  if (at >= text.size()) return text.size();
  while (at > 0 && blanks.find(text[at - 1]) == std::string_view::npos) --at;
  return at;
}

std::string ListOpsTokenizer::to_json() const { return json_text(nlohmann::json{{"kind", kind()}}); }

}  // namespace capstan
