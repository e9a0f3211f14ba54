// What every source of labelled examples makes, and what batches are cut from (ExampleBatches). Runs save the
// fingerprint, so the bytes that it hashes must not change: tests/data/test_batches.cpp and test_data_source.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/batches/source_content.hpp"
#include "data/files/split.hpp"
#include "data/files/token_row.hpp"
#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

/// Labels of one example, in ascending order.
using LabelSet = std::vector<int32_t>;

/// Token sequences of different lengths, end to end, each with a number: its class or, of a pair, the length of its
/// prompt (data/pairs); or each with any number of labels (multi-label).
class ExampleSet {
 public:
  ExampleSet() : ExampleSet("") {}
  explicit ExampleSet(std::string folder, size_t max_in_memory = ByteStore::max_in_memory)
      : tokens_(1, std::move(folder), max_in_memory) {}
  /// Examples that each have a set of labels below `classes`.
  static ExampleSet multi_label(int64_t classes, std::string folder = "");

  int64_t size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t length(int64_t example) const { return offset(example + 1) - offset(example); }
  /// Any number of threads may ask for tokens and bytes while none adds.
  std::vector<int32_t> tokens(int64_t example) const { return tokens_.slice(offset(example), offset(example + 1)); }
  /// Writes the tokens of an example as bytes; false if any example has a token that is not below 256.
  bool read_bytes(int64_t example, std::string& to) const {
    return tokens_.read_bytes(offset(example), offset(example + 1), to);
  }
  /// copy_hash() of its tokens, or what group_last() gave it. Any number of threads may ask while none adds.
  uint64_t hash(int64_t example) const;
  /// The tokens of all examples, end to end.
  const TokenRow& all_tokens() const { return tokens_; }
  /// The label of an example; must not be called for multi-label examples.
  int32_t label(int64_t example) const { return labels_[static_cast<size_t>(example)]; }
  LabelSet labels(int64_t example) const;
  /// Number of classes of multi-label examples; 0: each has one label.
  int64_t label_columns() const { return label_columns_; }
  /// Labels of all examples together.
  int64_t label_count() const { return static_cast<int64_t>(labels_.size()); }
  int64_t token_count() const { return offsets_.back(); }
  int64_t longest() const;
  /// Examples that have each of `classes` labels.
  std::vector<int64_t> class_counts(int64_t classes) const;

  /// Reserves memory for `examples` examples that are about to be added.
  void reserve(size_t examples);
  /// Throws std::invalid_argument for an example without tokens, and unless there is one label or the set is
  /// multi-label.
  void add(const std::vector<int32_t>& tokens, const LabelSet& labels);
  void add(const std::vector<int32_t>& tokens, int32_t label) { add(tokens, LabelSet{label}); }
  /// Gives the example added last the weight `weight` in training; others have weight 1.
  void weigh_last(double weight);
  /// Sets hash() of the example added last: examples of one group have the same one. Of all examples, or of none.
  void group_last(uint64_t hash) { groups_.push_back(hash); }
  /// Does any example have a weight other than 1?
  bool has_weights() const { return !weights_.empty(); }
  double weight(int64_t example) const { return weights_.empty() ? 1 : weights_[static_cast<size_t>(example)]; }
  /// XXH3-128 over tokens, labels, weights and groups.
  std::string fingerprint() const;

 private:
  int64_t offset(int64_t example) const { return offsets_[static_cast<size_t>(example)]; }

  TokenRow tokens_;
  std::vector<int64_t> offsets_{0};
  std::vector<int32_t> labels_;
  int64_t label_columns_ = 0;
  std::vector<int64_t> label_offsets_;  // of multi-label examples only
  std::vector<double> weights_;         // of each example; empty: all are 1
  std::vector<uint64_t> groups_;        // of each example, or empty
};

/// A classification task. `test` is empty where the configuration names none.
struct ClassificationData : PerSplit<ExampleSet>, SourceContent {
  /// Over what training sees and is judged by: tokens and labels of train and valid, and the classes.
  std::string fingerprint() const;
};

}  // namespace capstan
