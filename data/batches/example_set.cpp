#include "data/batches/example_set.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "data/files/token_row.hpp"

namespace capstan {

ExampleSet ExampleSet::multi_label(int64_t classes) {
  check(classes > 0, "examples: {} classes", classes);
  ExampleSet examples;
  examples.label_columns_ = classes;
  examples.label_offsets_ = {0};
  return examples;
}

LabelSet ExampleSet::labels(int64_t example) const {
  if (label_columns_ == 0) return {label(example)};
  const auto at = static_cast<size_t>(example);
  return {labels_.begin() + label_offsets_[at], labels_.begin() + label_offsets_[at + 1]};
}

int64_t ExampleSet::longest() const {
  int64_t result = 0;
  for (int64_t i = 0; i < size(); ++i) result = std::max(result, length(i));
  return result;
}

std::vector<int64_t> ExampleSet::class_counts(int64_t classes) const {
  std::vector<int64_t> counts(static_cast<size_t>(classes), 0);
  for (const int32_t label : labels_) ++counts.at(static_cast<size_t>(label));
  return counts;
}

void ExampleSet::add(const std::vector<int32_t>& tokens, const LabelSet& labels) {
  check(!tokens.empty(), "examples: example {} has no tokens", size());
  check(label_columns_ > 0 || labels.size() == 1, "examples: example {} has {} labels", size(), labels.size());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  offsets_.push_back(static_cast<int64_t>(tokens_.size()));
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  if (label_columns_ > 0) label_offsets_.push_back(static_cast<int64_t>(labels_.size()));
  if (!weights_.empty()) weights_.push_back(1);
}

void ExampleSet::weigh_last(double weight) {
  if (weights_.empty() && weight != 1) weights_.assign(static_cast<size_t>(size()), 1);
  if (!weights_.empty()) weights_.back() = weight;
}

std::string ExampleSet::fingerprint() const {
  Fingerprint all;
  all.add(tokens_).add(offsets_).add(labels_);
  if (label_columns_ > 0) all.add(label_offsets_);
  if (has_weights()) all.add({reinterpret_cast<const char*>(weights_.data()), weights_.size() * sizeof(double)});
  return all.hex();
}

std::string ClassificationData::fingerprint() const {
  Fingerprint all;
  all.add(train.fingerprint()).add(valid.fingerprint());
  for (const std::string& name : classes) all.add(name);
  return all.hex();
}

}  // namespace capstan
