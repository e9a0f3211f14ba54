// Cuts a text's columns to length, where the longest column loses tokens first, and joins them. Training and prediction
// must make the same tokens: tests/data/labelled/test_labelled_source.cpp.
#include "data/batches/text_example.hpp"

#include <algorithm>
#include <numeric>

#include "core/base/error.hpp"

namespace capstan {
namespace {

/// The lengths with at most `limit` tokens in all: the longest loses a token at a time.
std::vector<size_t> shortened(std::vector<size_t> lengths, size_t limit) {
  size_t total = std::accumulate(lengths.begin(), lengths.end(), size_t{0});
  for (; total > limit; --total) --*std::max_element(lengths.begin(), lengths.end());
  return lengths;
}

}  // namespace

void check_columns(size_t columns, const TextRule& rule, const std::string& place) {
  if (columns == rule.columns) return;
  const auto texts = [](size_t count) { return count == 1 ? "one text" : fmt::format("{} texts", count); };
  throw Error(fmt::format("{}: {} where the model reads {}; {}", place, texts(columns), texts(rule.columns),
                          rule.columns == 1 ? "join them by a blank" : "give them in the order of data.text_columns"));
}

std::vector<int32_t> encode_text(const std::vector<std::string_view>& columns, const Tokenizer& tokenizer,
                                 const TextRule& rule, const std::string& place, int64_t* whole_length) {
  check_columns(columns.size(), rule, place);
  std::vector<std::vector<int32_t>> parts;
  std::vector<size_t> lengths;
  for (const std::string_view column : columns) {
    parts.push_back(tokenizer.encode(column, place));
    lengths.push_back(parts.back().size());
  }
  const size_t words = std::accumulate(lengths.begin(), lengths.end(), size_t{0}), separators = parts.size() - 1;
  if (whole_length != nullptr) *whole_length = words == 0 ? 0 : static_cast<int64_t>(words + separators);
  if (words == 0) return {};
  const auto limit = static_cast<size_t>(rule.max_length);
  if (limit > 0 && words + separators > limit) {
    if (rule.truncate == Truncate::error)
      throw Error(
          fmt::format("{}: the text has {} tokens, more than max_length = {}; raise max_length (and what the model can "
                      "take), or set truncate to head or tail",
                      place, words + separators, limit));
    lengths = shortened(std::move(lengths), limit > separators ? limit - separators : 0);
  }
  std::vector<int32_t> ids;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) ids.push_back(static_cast<int32_t>(tokenizer.vocabulary_size()));
    const size_t lost = rule.truncate == Truncate::tail ? parts[i].size() - lengths[i] : 0;
    const auto first = parts[i].begin() + static_cast<int64_t>(lost);
    ids.insert(ids.end(), first, first + static_cast<int64_t>(lengths[i]));
  }
  return ids;
}

}  // namespace capstan
