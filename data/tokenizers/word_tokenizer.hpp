// Text to one token per word (`tokenizer: word`). A run keeps the vocabulary in tokenizer.json, and old ones must be
// read: tests/data/tokenizers/test_tokenizer.cpp; it does not depend on threads: test_threads.cpp.
#pragma once

#include <unordered_map>

#include "core/config/schema.hpp"
#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

/// How WordTokenizer cuts a line into words.
enum class WordSplit { blanks, words };
inline std::vector<EnumName<WordSplit>> enum_names(WordSplit) {
  return {{WordSplit::blanks, "blanks"}, {WordSplit::words, "words"}};
}

struct WordTokenizerConfig {
  static constexpr const char* type_name = "word";
  WordSplit split = WordSplit::blanks;
  bool lower_case = false;
  int64_t max_size = 0;
  int64_t min_count = 1;
};
template <class Fields>
void describe(Fields& f, WordTokenizerConfig& c) {
  f("split", c.split, any(),
    "blanks: words are separated by white space, as in WikiText; words: a run of letters and digits is a word, and so "
    "is every other character");
  f("lower_case", c.lower_case, any(), "turn A-Z into a-z");
  f("max_size", c.max_size, size_from(0), "keep at most this many words, the most frequent ones; 0 = all");
  f("min_count", c.min_count, count_from(1), "keep words that occur at least this often");
}

/// One id per word of a vocabulary: 0 is `<unk>`, every word outside the vocabulary; 1 is `<eos>`, a line's end; then
/// the words, the most frequent first. Both may also occur in a text as words (WikiText has `<unk>`).
///
/// Split `blanks`: words are separated by blanks (space, tab, CR). Split `words`: a run of ASCII letters and digits and
/// of characters beyond ASCII is a word, every other character that is not blank is one on its own ("don't!" = don ' t
/// !).
class WordTokenizer final : public Tokenizer {
 public:
  static constexpr int32_t unknown = 0, end_of_line = 1;

  struct Rule {
    WordSplit split = WordSplit::blanks;
    bool lower_case = false;
  };

  /// `words` without `<unk>` and `<eos>`. Throws std::invalid_argument for an empty, repeated or reserved word.
  WordTokenizer(const Rule& rule, std::vector<std::string> words);
  /// Words in the order of frequency, then of bytes.
  static WordTokenizer from_texts(const WordTokenizerConfig& config, const Texts& texts);

  std::string kind() const override { return "word"; }
  int64_t vocabulary_size() const override { return static_cast<int64_t>(words_.size()); }
  /// Every '\n' gives one `<eos>`. Empty lines give nothing else, and a text without a final '\n' ends without one.
  std::vector<int32_t> encode(std::string_view text, const std::string& file = "text") const override;
  /// Words are joined by one blank, lines by '\n'.
  std::string piece(int32_t id, int32_t previous) const override;
  bool needs_utf8() const override { return true; }
  size_t boundary(std::string_view text, size_t at) const override;
  int32_t start_token() const override { return end_of_line; }
  std::optional<int32_t> unknown_token() const override { return unknown; }
  /// All words in the order of their ids.
  const std::vector<std::string>& words() const { return words_; }

 protected:
  void save_to(nlohmann::json& json) const override;

 private:
  Rule rule_;
  std::vector<std::string> words_;
  std::unordered_map<std::string, int32_t> ids_;
};

}  // namespace capstan
