#include "data/checks/duplicates.hpp"

#include <algorithm>
#include <tuple>

namespace capstan {
namespace {

using Marks = const TextMark*;

/// Counts the copies of one text, which are ordered by split and place.
void count_copies(Marks begin, Marks end, Duplicates& found) {
  std::array<const TextMark*, checked_splits> first{};
  const TextMark* other = nullptr;  // the first with another label
  for (const TextMark* mark = begin; mark != end; ++mark) {
    Duplicates::OfSplit& split = found.splits[mark->split];
    if (first[mark->split] != nullptr) {
      ++split.repeated;
      split.repeated_weight += mark->weight;
    } else {
      first[mark->split] = mark;
    }
    if (other == nullptr && mark->label != begin->label) other = mark;
  }
  for (const TextMark* mark = begin; mark != end; ++mark) {
    Duplicates::OfSplit& split = found.splits[mark->split];
    if (other != nullptr) ++split.other_label;
    for (uint32_t s = 0; s < checked_splits; ++s) {
      if (s == mark->split || first[s] == nullptr) continue;
      ++split.also_in[s];
      split.weight_also_in[s] += mark->weight;
      if (split.examples[s].size() < Duplicates::shown)
        split.examples[s].push_back({first[s]->place, mark->place, s, mark->split});
    }
  }
  if (other != nullptr && found.conflicts.size() < Duplicates::shown)
    found.conflicts.push_back({begin->place, other->place, begin->split, other->split});
}

}  // namespace

Duplicates find_duplicates(std::vector<TextMark>& marks) {
  std::sort(marks.begin(), marks.end(), [](const TextMark& a, const TextMark& b) {
    return std::tie(a.hash, a.split, a.place) < std::tie(b.hash, b.split, b.place);
  });
  Duplicates found;
  for (Marks at = marks.data(), all = at + marks.size(); at != all;) {
    Marks end = at + 1;
    while (end != all && end->hash == at->hash) ++end;
    if (end - at > 1) count_copies(at, end, found);
    at = end;
  }
  return found;
}

}  // namespace capstan
