#include "train/evaluation/rouge.hpp"

#include <algorithm>
#include <unordered_map>

namespace capstan {
namespace {

/// Python's lower() also turns these two characters into ASCII letters: the Kelvin sign into k, and a capital I with a
/// dot into i and a combining dot.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      word += c;
    } else if (c >= 'A' && c <= 'Z') {
      word += static_cast<char>(c - 'A' + 'a');
    } else if (text.substr(at, 3) == "\xe2\x84\xaa") {
      word += 'k';
      at += 2;
    } else if (text.substr(at, 2) == "\xc4\xb0") {
      word += 'i';
      end_word();
      ++at;
    } else {
      end_word();
    }
  }
  end_word();
  return words;
}

RougeScore score(double shared, double of_reference, double of_prediction) {
  RougeScore result;
  result.precision = shared / std::max(of_prediction, 1.0);
  result.recall = shared / std::max(of_reference, 1.0);
  const double sum = result.precision + result.recall;
  if (sum > 0) result.f1 = 2 * result.precision * result.recall / sum;
  return result;
}

std::unordered_map<std::string, int64_t> ngrams(const std::vector<std::string>& words, size_t order) {
  std::unordered_map<std::string, int64_t> counts;
  for (size_t at = 0; at + order <= words.size(); ++at) {
    std::string ngram;
    for (size_t i = 0; i < order; ++i) ngram += words[at + i] + ' ';
    ++counts[ngram];
  }
  return counts;
}

RougeScore of_ngrams(const std::vector<std::string>& reference, const std::vector<std::string>& prediction,
                     size_t order) {
  const auto mine = ngrams(reference, order), theirs = ngrams(prediction, order);
  int64_t shared = 0, of_reference = 0, of_prediction = 0;
  for (const auto& [ngram, count] : theirs) of_prediction += count;
  for (const auto& [ngram, count] : mine) {
    of_reference += count;
    const auto found = theirs.find(ngram);
    if (found != theirs.end()) shared += std::min(count, found->second);
  }
  return score(static_cast<double>(shared), static_cast<double>(of_reference), static_cast<double>(of_prediction));
}

/// Two rows of the table, so that memory grows with one text only.
size_t longest_common(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<size_t> above(b.size() + 1, 0), row(b.size() + 1, 0);
  for (const std::string& word : a) {
    for (size_t j = 0; j < b.size(); ++j) row[j + 1] = word == b[j] ? above[j] + 1 : std::max(above[j + 1], row[j]);
    std::swap(above, row);
  }
  return above.back();
}

}  // namespace

RougeScores rouge(std::string_view reference, std::string_view prediction) {
  const std::vector<std::string> mine = words_of(reference), theirs = words_of(prediction);
  if (mine.empty() || theirs.empty()) return {};
  return {of_ngrams(mine, theirs, 1), of_ngrams(mine, theirs, 2),
          score(static_cast<double>(longest_common(mine, theirs)), static_cast<double>(mine.size()),
                static_cast<double>(theirs.size()))};
}

}  // namespace capstan
