// Labelled examples as one row of tokens and where each begins. Runs save the fingerprint, so what it hashes must not
// change: tests/data/test_batches.cpp and test_data_source.cpp.
#include "data/batches/example_set.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "data/checks/copies.hpp"

namespace capstan {

ExampleSet ExampleSet::multi_label(int64_t classes, std::string folder) {
  check(classes > 0, "examples: {} classes", classes);
  ExampleSet examples(std::move(folder));
  examples.label_columns_ = classes;
  examples.label_offsets_ = {0};
  return examples;
}

uint64_t ExampleSet::hash(int64_t example) const {
  if (!groups_.empty()) return groups_[static_cast<size_t>(example)];
  std::string bytes;
  if (read_bytes(example, bytes)) return copy_hash(bytes);
  const std::vector<int32_t> wide = tokens(example);
  return copy_hash({reinterpret_cast<const char*>(wide.data()), wide.size() * sizeof(int32_t)});
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

void ExampleSet::reserve(size_t examples) {
  offsets_.reserve(examples + 1);
  labels_.reserve(examples);
}

void ExampleSet::add(const std::vector<int32_t>& tokens, const LabelSet& labels) {
  check(!tokens.empty(), "examples: example {} has no tokens", size());
  check(label_columns_ > 0 || labels.size() == 1, "examples: example {} has {} labels", size(), labels.size());
  tokens_.append(tokens);
  offsets_.push_back(token_count() + static_cast<int64_t>(tokens.size()));
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  if (label_columns_ > 0) label_offsets_.push_back(static_cast<int64_t>(labels_.size()));
  if (!weights_.empty()) weights_.push_back(1);
}

void ExampleSet::weigh_last(double weight) {
  if (weights_.empty() && weight != 1) weights_.assign(static_cast<size_t>(size()), 1);
  if (!weights_.empty()) weights_.back() = weight;
}

std::string ExampleSet::fingerprint() const {
  Fingerprint content;
  content.add(tokens_).add(offsets_).add(labels_);
  if (label_columns_ > 0) content.add(label_offsets_);
  if (has_weights()) content.add({reinterpret_cast<const char*>(weights_.data()), weights_.size() * sizeof(double)});
  if (!groups_.empty()) content.add({reinterpret_cast<const char*>(groups_.data()), groups_.size() * sizeof(uint64_t)});
  return content.hex();
}

std::string ClassificationData::fingerprint() const {
  Fingerprint content;
  content.add(train.fingerprint()).add(valid.fingerprint());
  for (const std::string& name : classes) content.add(name);
  return content.hex();
}

}  // namespace capstan
