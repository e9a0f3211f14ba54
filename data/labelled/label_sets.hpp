// Sets of labels as numbers.
#pragma once

#include <map>

#include "data/batches/example_set.hpp"

namespace capstan {

/// Gives every set of labels a number. That of the set of one label, where texts have one label each, is the label.
class LabelSets {
 public:
  explicit LabelSets(bool multi_label) : multi_label_(multi_label) {}

  bool multi_label() const { return multi_label_; }
  /// `labels`: ascending.
  int32_t number_of(const LabelSet& labels);
  LabelSet labels(int32_t number) const {
    return multi_label_ ? *sets_[static_cast<size_t>(number)] : LabelSet{number};
  }

 private:
  bool multi_label_;
  std::map<LabelSet, int32_t> numbers_;
  std::vector<const LabelSet*> sets_;  // the keys of numbers_
};

inline int32_t LabelSets::number_of(const LabelSet& labels) {
  if (!multi_label_) return labels.front();
  const auto [found, added] = numbers_.emplace(labels, static_cast<int32_t>(sets_.size()));
  if (added) sets_.push_back(&found->first);
  return found->second;
}

}  // namespace capstan
