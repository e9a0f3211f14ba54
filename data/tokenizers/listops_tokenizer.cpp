#include "data/tokenizers/listops_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/json.hpp"
#include "data/tokenizers/blank_separated.hpp"

namespace capstan {
namespace {

constexpr std::array<std::string_view, ListOpsTokenizer::size> words = {
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "[MIN", "[MAX", "[MED", "[SM", "]"};

}  // namespace

std::vector<int32_t> ListOpsTokenizer::encode(std::string_view text, const std::string& file) const {
  std::vector<int32_t> ids;
  for_each_blank_separated(text, [&](std::string_view word, size_t at) {
    const auto found = std::find(words.begin(), words.end(), word == "X" ? "]" : word);
    if (found != words.end())
      ids.push_back(static_cast<int32_t>(found - words.begin()));
    else if (word != "(" && word != ")")
      throw Error(fmt::format("{}: '{}' is not a token of ListOps; known: 0-9 [MIN [MAX [MED [SM ] ( )",
                              place_in_text(file, text, at), word));
  });
  return ids;
}

std::string ListOpsTokenizer::piece(int32_t id, int32_t previous) const {
  check_id(id);
  return (previous < 0 ? "" : " ") + std::string(words[static_cast<size_t>(id)]);
}

size_t ListOpsTokenizer::boundary(std::string_view text, size_t at) const { return blank_separated_boundary(text, at); }

std::string ListOpsTokenizer::to_json() const { return json_text(nlohmann::json{{"kind", kind()}}); }

}  // namespace capstan
