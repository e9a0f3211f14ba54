// The n-grams of all training texts, as the rows of a sparse matrix: what the classes of this folder solve for and
// learn from. They must be what LinearClassifier (models/linear_classifier.hpp) computes from a text, or training and
// prediction would differ: tests/train/linear/test_linear.cpp ("rows of n-grams: ...").
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/machine/large_memory.hpp"
#include "data/batches/labelled_texts.hpp"
#include "data/checks/copies.hpp"
#include "models/linear_classifier.hpp"
#include "nn/layers/text_ngrams.hpp"
#include "train/linear/work_file.hpp"

namespace capstan {

/// Entries of one row and one block, its words or its characters: x[bucket] = norm * count_weight(count) *
/// scale[bucket].
struct NgramBlock {
  const NgramCount *begin, *end;
  float norm;  // one over the Euclidean norm of the block
};

/// An entry of a row as solvers and AdaGrad use it: `value` is x, with count, norm and scale in it.
struct NgramValue {
  uint32_t bucket;
  float value;
};

/// Some entries of a row that follow each other.
struct NgramValues {
  const NgramValue *begin, *end;
};

/// The entries of a row: of words, then of characters, both in the order of their buckets.
struct RowValues {
  std::vector<NgramValue> all;
  size_t words = 0;  // how many of `all` are words: where characters begin
  /// Those of the buckets [first, last): words, and characters.
  std::array<NgramValues, 2> in(int64_t first, int64_t last) const {
    const auto before = [](const NgramValue& entry, int64_t bucket) { return entry.bucket < bucket; };
    const auto part = [&](const NgramValue* begin, const NgramValue* end) -> NgramValues {
      return {std::lower_bound(begin, end, first, before), std::lower_bound(begin, end, last, before)};
    };
    return {part(all.data(), all.data() + words), part(all.data() + words, all.data() + all.size())};
  }
};

/// Memory of one thread that makes rows, kept from row to row: words that come again need not be hashed again.
struct RowScratch {
  NgramNumbers found;
  NgramMemory memory;
};

/// From so many texts on, AdaGrad learns as much as a solution in a fraction of its time.
constexpr int64_t many_texts = 100'000;
/// Up to so many entries, weights are solved for: with fewer than many_texts texts, for half an hour of a thread.
inline int64_t max_entries_solved(int64_t texts, int64_t problems) {
  return (texts >= many_texts ? int64_t{10'000'000} : int64_t{4'000'000'000}) / problems;
}
/// How many times as long as one reading of the n-grams what follows takes, on one thread and texts of 68 bytes: with 2
/// classes 1.7 and 5.0 on an Intel Xeon (6/207), 2.5 and 6.4 on an AMD EPYC (25/17); with 22, 2.9 and 6.3, 3.5
/// and 10.9. This is between them. `columns`: classes, or 1 of two; `kept`: rows are in memory.
inline double adagrad_in_readings(int64_t columns, bool kept) {
  const auto each = static_cast<double>(columns);
  return kept ? 2.0 + 0.06 * each : 5.4 + 0.14 * each;
}

/// Limits for the bytes of the entries of all rows: up to `solved` the weights are solved for, and up to `kept`, if
/// that is more, rows are kept in memory.
struct RowBudget {
  int64_t solved = int64_t{400} << 20;
  int64_t kept = 0;
};

/// Labels of a row, in ascending order.
struct RowLabels {
  RowLabels(const int32_t* from, const int32_t* to) : first(from), last(to) {}
  RowLabels(const LabelSet& labels) : first(labels.data()), last(labels.data() + labels.size()) {}
  const int32_t* begin() const { return first; }
  const int32_t* end() const { return last; }
  bool empty() const { return first == last; }
  int32_t front() const { return *first; }
  bool has(int32_t label) const { return std::binary_search(first, last, label); }

  const int32_t *first, *last;
};

/// A linear classifier that another one starts from (train.init_from), which learns weights for its scores.
struct BaseClassifier {
  LinearClassifierConfig config;  // with the choices that its training made, such as the number of buckets
  int64_t columns = 0;            // scores of a text: one per class, or with two classes only that of the second
  std::vector<float> scale;       // (buckets)
  std::vector<float> weight;      // (buckets, columns)
  std::vector<float> bias;        // (columns)
  std::string fingerprint = {};   // of the file that it is from
};

/// A row is a text and its labels; its entries are what LinearClassifier computes from the text. scale = IDF,
/// ln((1 + rows) / (1 + rows with f)) + 1, and 0 for n-grams that are in fewer texts than config().min_texts. With a
/// base classifier, n-grams that it knows keep its scale, and its scores are features of a row, too. Where entries take
/// too much memory, they are made again whenever a row is read. What is computed from rows does not depend on this.
class NgramRows {
 public:
  /// Standard deviation of a base classifier's scores as features, beside n-grams of unit norm. Larger ones are no
  /// better, and make the solver slow.
  static constexpr double base_deviation = 0.3;

  /// Row i is text i; `texts` must outlive this where rows are not kept(). `base`: the classifier to start from, or
  /// null; its n-grams and buckets replace those of `config`. AdaGrad cannot start from one, so that with a base Error
  /// is thrown when entries, or the scores of the base, take more memory than the budget has.
  NgramRows(const LabelledTexts& texts, const LinearClassifierConfig& config, int64_t classes,
            std::shared_ptr<const BaseClassifier> base = nullptr, RowBudget budget = {}, WorkPlace work = {});

  int64_t rows() const { return rows_; }
  int64_t classes() const { return classes_; }
  int64_t entries() const { return entry_count_; }
  /// Are there too many entries to be solved for, in memory or in time?
  bool by_adagrad() const { return by_adagrad_; }
  /// Are the entries in memory? Otherwise only read_row() has them: it makes them again.
  bool kept() const { return !texts_; }
  int64_t tokens() const { return tokens_; }  // of all texts
  /// The labels of a row: one, or with multi_label() any number.
  RowLabels labels(int64_t row) const {
    const int32_t* const all = labels_.data();
    if (!multi_label_) return {all + row, all + row + 1};
    const auto i = static_cast<size_t>(row);
    return {all + label_starts_[i], all + label_starts_[i + 1]};
  }
  bool has(int64_t row, int32_t label) const { return labels(row).has(label); }
  /// Rows whose text is that of an earlier one.
  const std::vector<Copy>& copies() const { return copies_; }
  bool multi_label() const { return multi_label_; }
  bool weighs_classes() const { return !class_weights_.empty(); }
  const std::vector<double>& class_weights() const { return class_weights_; }
  /// How much a text counts, whatever its labels.
  double weight(int64_t row) const { return weights_.empty() ? 1 : weights_[static_cast<size_t>(row)]; }
  /// weight(row) divided by the mean of all rows.
  double relative_weight(int64_t row) const { return weight(row) / mean_weight_; }
  /// How much a text counts for a class or label: times the weight of its class or, with several labels, times that of
  /// `label` if the text has it.
  double weight(int64_t row, int32_t label) const {
    if (class_weights_.empty() || (multi_label_ && !has(row, label))) return weight(row);
    return weight(row) * class_weights_[static_cast<size_t>(multi_label_ ? label : labels(row).front())];
  }
  /// With two classes and one label per text, weights of the first class are those of the second one times -1.
  bool is_binary() const { return classes_ == 2 && !multi_label_; }
  /// The entries of a row, whether rows are kept or not, with the same bits. Any number of threads may read.
  void read_row(int64_t row, RowScratch& scratch, RowValues& values) const;
  /// A block of a row, where rows are kept(). which: 0 words, 1 characters.
  NgramBlock block(int64_t row, int which) const {
    const auto i = static_cast<size_t>(2 * row + which);
    return {entries_.data() + starts_[i], entries_.data() + starts_[i + 1], norms_[i]};
  }
  const std::vector<float>& scale() const { return scale_; }  // by bucket
  const BaseClassifier* base() const { return base_.get(); }
  /// The base classifier's scores of a row, (base()->columns), each times base_factor().
  const float* base_scores(int64_t row) const {
    return base_scores_.data() + row * static_cast<int64_t>(base_factor_.size());
  }
  /// By column: what gives the scores of all rows a standard deviation of base_deviation; empty without a base
  /// classifier.
  const std::vector<float>& base_factor() const { return base_factor_; }
  /// The configuration with the choices that were made: words, min_texts and buckets.
  const LinearClassifierConfig& config() const { return config_; }
  /// Where unfinished work on the rows is kept.
  const WorkPlace& work() const { return work_; }
  /// How many rows, buckets and entries there are, in a sentence.
  std::string report() const;

 private:
  void read_labels(const LabelledTexts& texts);
  double expected_entries(const LabelledTexts& texts) const;
  bool read(const LabelledTexts& texts, int64_t max_entries, double expected);
  void find_buckets(int64_t row, int bits, RowScratch& scratch, std::vector<uint32_t>& buckets) const;
  std::vector<int32_t> rows_with(int bits);
  int max_bits() const;
  void choose_sizes();
  void weigh(const std::vector<int32_t>& rows);
  float finish_block(std::vector<NgramCount>& block) const;
  void set_final_entries();
  void score_with_base();

  LinearClassifierConfig config_;
  int64_t classes_, rows_, tokens_ = 0, entry_count_ = 0;
  bool by_adagrad_ = false;
  std::optional<LabelledTexts> texts_;  // what rows are made of whenever one is read; none: rows are kept
  std::vector<NgramCount, DefaultInitAllocator<NgramCount>> entries_;
  std::vector<int64_t> starts_;  // by 2 * row + block (0 words, 1 characters): its first entry
  bool multi_label_;
  std::vector<int32_t> labels_;
  std::vector<Copy> copies_;
  std::vector<int64_t> label_starts_;            // by row, with multi_label_: its first label in labels_
  std::vector<float> norms_, scale_;             // by block, as starts_; by bucket
  std::vector<double> weights_, class_weights_;  // by row, by class; empty: all are 1
  double mean_weight_ = 1;                       // of rows
  std::shared_ptr<const BaseClassifier> base_;
  std::vector<float> base_scores_, base_factor_;
  WorkPlace work_;
};

}  // namespace capstan
