// ExampleSource: batches, sampled texts and lines for the log from labelled examples in memory or in a file.
// tests/data/test_data_source.cpp.
#include "data/batches/example_source.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace capstan {

ExampleSource::ExampleSource(ClassificationData data, const SourceInputs& inputs, const Settings& settings,
                             std::vector<std::string> without)
    : data_(std::move(data)),
      identity_(source_identity(settings, std::move(without), data_.fingerprint())),
      batches_(inputs.batches) {
  if (has(Split::train)) training_.emplace(data_.train, inputs.batches, inputs.seed);
}

std::vector<int64_t> ExampleSource::class_counts() const {
  return data_.train.class_counts(static_cast<int64_t>(data_.classes.size()));
}

std::unique_ptr<BatchSource> ExampleSource::evaluation(Split split) const {
  check_has(split);
  return std::make_unique<ExampleBatches>(data_[split], batches_, std::nullopt);
}

LabelledTexts ExampleSource::texts(Split split) const {
  check_has(split);
  if (split != Split::train) return {data_[split], *data_.tokenizer};
  return {data_[split], *data_.tokenizer, [this](int64_t place) { return training_->example(0, place); }};
}

std::vector<std::string> ExampleSource::describe_split(Split split) const {
  const ExampleSet& set = data_[split];
  const std::string labels =
      set.label_columns() > 0
          ? fmt::format(" with {:.2f} labels each",
                        static_cast<double>(set.label_count()) / static_cast<double>(std::max<int64_t>(set.size(), 1)))
          : "";
  return {fmt::format("{} examples of {} classes{}, {} tokens, the longest {}", set.size(), data_.classes.size(),
                      labels, set.token_count(), set.longest())};
}

}  // namespace capstan
