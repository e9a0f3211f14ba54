// Words are counted on all threads, in blocks of the texts, and ordered by count and then by their bytes, so the
// vocabulary does not depend on the threads.
#include "data/tokenizers/word_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/strings/strings.hpp"
#include "core/strings/utf8.hpp"

namespace capstan {
namespace {

const std::string unknown_word = "<unk>", end_of_line_word = "<eos>";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || static_cast<uint8_t>(c) >= 0x80;
}

/// Calls visit(word) for every word of the text, visit("\n") for every line's end.
void split_words(std::string_view text, const WordTokenizer::Rule& rule,
                 const std::function<void(std::string_view)>& visit) {
  const auto continues = [&rule](char c) {
    return rule.split == WordSplit::blanks ? !is_blank(c) && c != '\n' : is_letter_or_digit(c);
  };
  for (size_t at = 0; at < text.size();) {
    if (is_blank(text[at])) {
      ++at;
      continue;
    }
    size_t end = at + 1;
    if (continues(text[at]))
      while (end < text.size() && continues(text[end])) ++end;
    visit(text.substr(at, end - at));
    at = end;
  }
}

std::string key_of(std::string_view word, const WordTokenizer::Rule& rule) {
  return rule.lower_case ? lower_case(word) : std::string(word);
}

using WordCounts = std::unordered_map<std::string, int64_t>;

/// Each thread counts words in so many tables, by their hashes, so that tables of all threads can be added up in
/// parallel.
constexpr size_t count_shares = 64;
using SharedCounts = std::array<WordCounts, count_shares>;

/// How often each word occurs. Sums of integers: they do not depend on which thread counted what.
SharedCounts count_words(const Texts& texts, const WordTokenizer::Rule& rule) {
  const FixedThreads fixed;
  std::vector<SharedCounts> of_threads(static_cast<size_t>(team_size()));
  const WordTokenizer empty(rule, {});
  for_all_blocks(texts, boundary_of(empty), [&](std::string_view text) {
    SharedCounts& counts = of_threads[static_cast<size_t>(thread_index())];
    split_words(text, rule, [&](std::string_view word) {
      if (word == "\n") return;
      std::string key = key_of(word, rule);
      WordCounts& share = counts[std::hash<std::string>()(key) % count_shares];
      ++share[std::move(key)];
    });
  });
  parallel_units(count_shares, [&](int64_t i) {
    const auto share = static_cast<size_t>(i);
    for (size_t thread = 1; thread < of_threads.size(); ++thread)
      for (const auto& [word, count] : std::exchange(of_threads[thread][share], {}))
        of_threads[0][share][word] += count;
  });
  return std::move(of_threads[0]);
}

}  // namespace

WordTokenizer::WordTokenizer(const Rule& rule, std::vector<std::string> words) : rule_(rule), words_(std::move(words)) {
  words_.insert(words_.begin(), {unknown_word, end_of_line_word});
  for (size_t i = 0; i < words_.size(); ++i) {
    check(!words_[i].empty(), "word tokenizer: word {} is empty", i);
    check(ids_.emplace(words_[i], static_cast<int32_t>(i)).second, "word tokenizer: '{}' occurs twice", words_[i]);
  }
}

WordTokenizer WordTokenizer::from_texts(const WordTokenizerConfig& config, const Texts& texts) {
  const Rule rule{config.split, config.lower_case};
  std::vector<std::pair<int64_t, std::string>> ordered;
  for (const WordCounts& counts : count_words(texts, rule))
    for (const auto& [word, count] : counts)
      if (count >= config.min_count && word != unknown_word && word != end_of_line_word)
        ordered.emplace_back(-count, word);
  std::sort(ordered.begin(), ordered.end());
  if (config.max_size > 0) {
    const auto room = static_cast<size_t>(std::max<int64_t>(config.max_size - 2, 0));
    ordered.resize(std::min(ordered.size(), room));
  }
  std::vector<std::string> words;
  for (auto& entry : ordered) words.push_back(std::move(entry.second));
  return WordTokenizer(rule, std::move(words));
}

std::vector<int32_t> WordTokenizer::encode(std::string_view text, const std::string& file) const {
  check_utf8(text, file);
  std::vector<int32_t> ids;
  split_words(text, rule_, [&](std::string_view word) {
    if (word == "\n") {
      ids.push_back(end_of_line);
      return;
    }
    const auto found = ids_.find(key_of(word, rule_));
    ids.push_back(found == ids_.end() ? unknown : found->second);
  });
  return ids;
}

std::string WordTokenizer::piece(int32_t id, int32_t previous) const {
  check_id(id);
  if (id == end_of_line) return "\n";
  const bool first_of_line = previous < 0 || previous == end_of_line;
  return (first_of_line ? "" : " ") + words_[static_cast<size_t>(id)];
}

size_t WordTokenizer::boundary(std::string_view text, size_t at) const {
  if (at >= text.size()) return text.size();
  while (at > 0 && !is_blank(text[at - 1]) && text[at - 1] != '\n') --at;
  return at;
}

void WordTokenizer::save_to(nlohmann::json& json) const {
  json["split"] = enum_name(rule_.split);
  json["lower_case"] = rule_.lower_case;
  json["words"] = std::vector<std::string>(words_.begin() + 2, words_.end());
}

}  // namespace capstan
