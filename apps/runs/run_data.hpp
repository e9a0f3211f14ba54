// The data of a run, as the training loop and the models want it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/runs/run_config.hpp"
#include "data/batches/batcher.hpp"
#include "data/text/text_windows.hpp"

namespace capstan {

enum class Split { train, valid, test };
const char* to_string(Split split);
/// The split that --split names; throws ConfigError when there is none of that name.
Split split_called(const std::string& name);

/// Everything that `data:` stands for. Splits that the configuration does not give are empty.
class RunData {
 public:
  /// Reads the data. `tokenizer` and `classes`: those of an earlier run, null and empty for a new one.
  RunData(const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer, const std::vector<std::string>& classes);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const std::vector<std::string>& classes() const { return classes_; }
  /// Training examples of each class; empty for data without labels.
  std::vector<int64_t> class_counts() const;
  /// What a place in the data depends on, one fact per line.
  const std::string& identity() const { return identity_; }

  bool has(Split split) const;
  /// Batches in the order of training; the seed and the batch size are the run's.
  const BatchSource& training() const { return *training_; }
  /// Every example of a split once. Throws Error when there is no such split.
  std::unique_ptr<BatchSource> evaluation(Split split, bool per_file = false) const;
  /// The text of a split; throws Error unless the data is text and has the split.
  const TextCorpus& corpus(Split split) const;
  /// Rows and lines that cannot be used and were skipped, a line for the log each.
  const std::vector<std::string>& left_out() const;
  /// Lines for the log.
  std::vector<std::string> description() const;

 private:
  const ExampleSet& examples(Split split) const;
  /// Of associative recall.
  int64_t sequences(Split split) const;

  const RunConfig& config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::string> classes_;
  std::string identity_;
  std::vector<std::string> mixture_;  // lines on the sources of training text
  // One of the three: text, labelled examples, or sequences that are generated as they are asked for.
  TextData text_;
  ClassificationData labelled_;
  const AssociativeRecallConfig* recall_ = nullptr;
  bool is_text_;
  std::unique_ptr<BatchSource> training_;
};

}  // namespace capstan
