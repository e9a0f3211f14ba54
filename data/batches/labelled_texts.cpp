// The text of an example: its bytes, or its tokens decoded, with a line end for a separator. Training and prediction
// must read the same text: tests/train/linear/test_linear.cpp.
#include "data/batches/labelled_texts.hpp"

namespace capstan {
namespace {

/// The text of tokens; a separator, the id after the vocabulary, becomes a line end.
std::string text_of(const int32_t* tokens, int64_t count, const Tokenizer& tokenizer) {
  std::string text;
  int32_t previous = -1;
  for (int64_t t = 0; t < count; ++t) {
    const bool between_columns = tokens[t] >= tokenizer.vocabulary_size();
    text += between_columns ? std::string("\n") : tokenizer.piece(tokens[t], previous);
    previous = between_columns ? -1 : tokens[t];
  }
  return text;
}

}  // namespace

std::string example_text(const std::vector<std::string_view>& columns, const Tokenizer& tokenizer, const TextRule& rule,
                         const std::string& place) {
  check_columns(columns.size(), rule, place);
  if (tokenizer.tokens_are_bytes()) {
    std::string whole;
    for (size_t i = 0; i < columns.size(); ++i) whole.append(i > 0 ? "\n" : "").append(columns[i]);
    const bool has_text = whole.size() + 1 > columns.size();
    if (rule.max_length == 0 || whole.size() <= static_cast<size_t>(rule.max_length)) return has_text ? whole : "";
  }
  const std::vector<int32_t> tokens = encode_text(columns, tokenizer, rule, place);
  return text_of(tokens.data(), static_cast<int64_t>(tokens.size()), tokenizer);
}

LabelledTexts::LabelledTexts(const ExampleSet& examples, const Tokenizer& tokenizer,
                             std::function<int64_t(int64_t i)> place_of)
    : examples_(examples), tokenizer_(tokenizer), place_of_(std::move(place_of)) {}

std::string LabelledTexts::text(int64_t i) const {
  const int64_t example = place(i);
  if (progress_ != nullptr) progress_->add(each_);
  std::string text;
  if (tokenizer_.tokens_are_bytes() && examples_.read_bytes(example, text)) return text;
  const std::vector<int32_t> tokens = examples_.tokens(example);
  return text_of(tokens.data(), static_cast<int64_t>(tokens.size()), tokenizer_);
}

}  // namespace capstan
