// Marks are sorted by hash, so copies are neighbours. A sample is taken by the hash, too: all copies of a text are in
// it, or none.
#include "data/checks/duplicates.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace capstan {
namespace {

using Marks = const TextMark*;

/// Counts the copies of one text, which are ordered by split and place.
void count_copies(Marks begin, Marks end, Duplicates& found) {
  std::array<const TextMark*, checked_splits> first{};
  const TextMark* other = nullptr;  // the first copy with another label than that of `begin`
  for (const TextMark* mark = begin; mark != end; ++mark) {
    Duplicates::OfSplit& split = found.splits[mark->split];
    if (first[mark->split] != nullptr)
      split.repeated.add(*mark);
    else
      first[mark->split] = mark;
    if (other == nullptr && mark->label != begin->label) other = mark;
  }
  for (const TextMark* mark = begin; mark != end; ++mark) {
    Duplicates::OfSplit& split = found.splits[mark->split];
    if (other != nullptr) split.other_label.add(*mark);
    for (uint32_t s = 0; s < checked_splits; ++s) {
      if (s == mark->split || first[s] == nullptr) continue;
      split.also_in[s].add(*mark);
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

void MarkSample::add(const TextMark& mark) {
  all_[mark.split].add(mark);
  const auto outside = [this](const TextMark& text) { return text.hash % stride_ != 0; };
  if (outside(mark)) return;
  marks_.push_back(mark);
  while (marks_.size() > most_ && stride_ < uint64_t{1} << 62) {
    stride_ *= 2;
    marks_.erase(std::remove_if(marks_.begin(), marks_.end(), outside), marks_.end());
  }
}

Duplicates MarkSample::duplicates() {
  Sums sampled;
  for (const TextMark& mark : marks_) sampled[mark.split].add(mark);
  Duplicates found = find_duplicates(marks_);
  const auto scale = [](int64_t& count, int64_t all, int64_t part) {
    if (part > 0 && part < all)
      count = std::llround(static_cast<double>(count) / static_cast<double>(part) * static_cast<double>(all));
  };
  for (size_t s = 0; s < checked_splits; ++s) {
    Duplicates::OfSplit& split = found.splits[s];
    for (Duplicates::Sum* const sum :
         {&split.repeated, &split.also_in[0], &split.also_in[1], &split.also_in[2], &split.other_label}) {
      scale(sum->texts, all_[s].texts, sampled[s].texts);
      scale(sum->weight, all_[s].weight, sampled[s].weight);
    }
  }
  return found;
}

}  // namespace capstan
