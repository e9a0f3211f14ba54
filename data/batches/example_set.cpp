#include "data/batches/example_set.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "data/files/fingerprint.hpp"

namespace capstan {

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

void ExampleSet::add(const std::vector<int32_t>& tokens, int32_t label) {
  check(!tokens.empty(), "examples: example {} has no tokens", size());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  offsets_.push_back(static_cast<int64_t>(tokens_.size()));
  labels_.push_back(label);
}

ExampleSet ExampleSet::subset(const std::vector<int64_t>& examples) const {
  ExampleSet result;
  for (const int64_t i : examples) result.add({tokens(i), tokens(i) + length(i)}, label(i));
  return result;
}

std::string ExampleSet::fingerprint() const { return Fingerprint().add(tokens_).add(offsets_).add(labels_).hex(); }

std::string ClassificationData::fingerprint() const {
  Fingerprint all;
  all.add(train.fingerprint()).add(valid.fingerprint());
  for (const std::string& name : classes) all.add(name);
  return all.hex();
}

}  // namespace capstan
