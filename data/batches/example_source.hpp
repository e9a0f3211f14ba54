// Labelled examples as a source of data: what the source `labelled` makes, once it has its examples.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/batches/data_source.hpp"
#include "data/batches/example_set.hpp"

namespace capstan {

class ExampleSource final : public DataSource {
 public:
  /// `settings` and `without`: see source_identity().
  ExampleSource(ClassificationData data, const SourceInputs& inputs, const Settings& settings,
                std::vector<std::string> without = {});

  const SourceContent& content() const override { return data_; }
  std::vector<int64_t> class_counts() const override;
  std::string identity() const override { return identity_; }

  bool has(Split split) const override { return data_[split].size() > 0; }
  const BatchSource& training() const override {
    check_has(Split::train);
    return *training_;
  }
  std::unique_ptr<BatchSource> evaluation(Split split) const override;
  LabelledTexts texts(Split split) const override;

 protected:
  std::vector<std::string> describe_split(Split split) const override;

 private:
  ClassificationData data_;
  std::string identity_;
  BatchConfig batches_;
  std::optional<ExampleBatches> training_;
};

}  // namespace capstan
