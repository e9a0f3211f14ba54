// How a text becomes an example of a classifier, or the source of a pair: its columns, its separator, and what is cut
// off. Training, `capstan predict` and the server read texts by this one function, so that they read the same tokens.
// tests/data/labelled/test_labelled_source.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/schema.hpp"
#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

/// What happens to a text of more than max_length tokens: its head is kept, its tail is kept, or it is an error.
enum class Truncate { head, tail, error };
inline std::vector<EnumName<Truncate>> enum_names(Truncate) {
  return {{Truncate::head, "head"}, {Truncate::tail, "tail"}, {Truncate::error, "error"}};
}

struct TextRule {
  size_t columns = 1;      // more than one: texts that are encoded apart, with a separator token between them
  int64_t max_length = 0;  // in tokens, separators included; 0: any length
  Truncate truncate = Truncate::head;
};

/// Throws Error naming `place` unless a text has as many columns as the rule says, or one for the rule's one.
void check_columns(size_t columns, const TextRule& rule, const std::string& place);

/// The tokens of a text in one or several columns. The separator is the id after the tokenizer's vocabulary. A text
/// that is too long loses tokens of its longest column first, and never a separator. Empty when all columns are. Throws
/// Error naming `place` for a longer text with Truncate::error, and what the tokenizer and check_columns() throw.
/// `whole_length`, unless null, receives the number of tokens before any were lost.
std::vector<int32_t> encode_text(const std::vector<std::string_view>& columns, const Tokenizer& tokenizer,
                                 const TextRule& rule, const std::string& place, int64_t* whole_length = nullptr);

}  // namespace capstan
