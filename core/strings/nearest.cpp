// nearest(): the least edit distance, in which two swapped neighbours are one edit; otherwise a word that begins alike.
// tests/core/strings/test_text.cpp.
#include "core/strings/nearest.hpp"

#include <algorithm>

namespace capstan {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: distances from prefixes of `a` that are two shorter,
  // one shorter, and of this length.
  std::vector<std::size_t> two_before, before(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) before[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_before[j - 2] + 1);
    }
    two_before = before;
    before = row;
  }
  return before[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t longest_word = 100, shortest_beginning = 3;
  if (word.size() > longest_word) return "";
  std::string best;
  std::size_t fewest = 1 + word.size() / 4;
  for (const auto& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance <= fewest && distance < std::max(word.size(), candidate.size())) {
      best = candidate;
      fewest = distance == 0 ? 0 : distance - 1;  // of equally near candidates the first wins
    }
  }
  if (!best.empty()) return best;
  for (const auto& candidate : candidates) {
    const std::size_t common = std::min(word.size(), candidate.size());
    if (common >= shortest_beginning && candidate.compare(0, common, word.substr(0, common)) == 0) return candidate;
  }
  return "";
}

}  // namespace capstan
