// AdaGrad over hashed rows of weights, one for each bucket of n-grams: how the weights of a linear classifier are
// learnt in epochs over all texts (fit_adagrad.cpp), and from texts as they come (online_classifier.cpp). It knows
// neither. A batch has the same bits on any number of threads: tests/train/linear/test_linear.cpp and
// test_online_classifier.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/array/array.hpp"
#include "core/machine/large_memory.hpp"
#include "train/linear/ngram_rows.hpp"

namespace capstan {

/// The most examples of a batch: as accurate as one example at a time.
constexpr int64_t adagrad_batch = 256;
/// So many entries before it is needed, the row of a bucket is fetched.
constexpr size_t rows_ahead = 8;
/// The scores of a text: one for each class, of two classes that of the second.
constexpr int64_t adagrad_columns(int64_t classes, bool multi_label) {
  return classes == 2 && !multi_label ? 1 : classes;
}
/// The weights of a bucket in memory: its columns, and zeros up to a multiple of a vector's length.
constexpr int64_t adagrad_width(int64_t columns) {
  constexpr int64_t floats_per_vector = 8;
  return columns == 1 ? 1 : (columns + floats_per_vector - 1) / floats_per_vector * floats_per_vector;
}

/// An example of a batch: what it is made of, then what AdaGrad finds.
struct AdaGradExample {
  RowValues values;  // an entry whose value is 0 has no effect
  RowLabels labels{nullptr, nullptr};
  double weight = 1;             // how much it counts
  std::vector<float> gradients;  // of its loss by its scores
  float squares = 0;             // sum of the squares of the gradients
};

/// Weights W, (buckets, columns), zero at first, and one accumulator, a sum of squared gradients, for each bucket
/// (Duchi et al. 2011). The logits of a row x are x W plus a bias, and the loss is that of the softmax or, where a text
/// has any number of labels, the sum of the logistic losses of all labels. Of two classes there is one column: the
/// logit of the second class, and that of the first with the other sign.
class AdaGrad {
 public:
  /// Of a configuration whose words and buckets are chosen. class_weights: by class; empty: all are 1.
  AdaGrad(const LinearClassifierConfig& config, int64_t classes, bool multi_label, std::vector<double> class_weights);

  int64_t columns() const { return columns_; }
  /// Chosen by texts of several data sets that were held back (docs/notes/ngrams.md).
  double first_rate() const { return columns_ == 1 ? 0.35 : 1; }
  int64_t width() const { return width_; }
  const float* row(int64_t bucket) const { return weights_.get() + bucket * width_; }
  float* row(int64_t bucket) { return weights_.get() + bucket * width_; }
  float* accumulators() { return accumulators_.get(); }
  const float* accumulators() const { return accumulators_.get(); }

  /// Sets values, labels and weight of example i. Called on any thread.
  using ReadExample = std::function<void(int64_t i, RowScratch& scratch, AdaGradExample& example)>;
  /// Learns from a batch of at most adagrad_batch examples, whose gradients are computed with the same weights. bias:
  /// by class. May stop (core/base/stop.hpp) before it has changed anything.
  void learn(int64_t count, float rate, const std::vector<double>& bias, const ReadExample& read);
  /// visit(example, first, last) for the examples of the last batch, in their order, on each thread with buckets
  /// [first, last) of its own.
  using VisitPart = std::function<void(const AdaGradExample& example, int64_t first, int64_t last)>;
  void for_parts(const VisitPart& visit);
  /// The examples of the last batch.
  const std::vector<AdaGradExample>& batch() const { return batch_; }

  /// Sets the values of row i. Called on any thread.
  using ReadRow = std::function<void(int64_t i, RowScratch& scratch, RowValues& values)>;
  /// The scores x W of so many rows, (count, columns). May stop.
  std::vector<float> scores(int64_t count, const ReadRow& read) const;
  /// The logits of scores that are multiplied by inverse_temperature, (classes).
  std::vector<double> logits(const float* scores, double inverse_temperature, const std::vector<double>& bias) const;
  /// Writes inverse_temperature times the weights into zeros, (buckets, classes), where they are not zero.
  void write_weights(double inverse_temperature, real* weight) const;

 private:
  /// scores += x W; (width).
  void add_scores(const std::vector<NgramValue>& values, float* scores) const;
  void read_batch(const std::vector<double>& bias, const ReadExample& read);
  void divide_buckets();
  void find_gradients(const std::vector<double>& bias, AdaGradExample& example) const;
  void step(const NgramValues& part, const AdaGradExample& example, float share, float rate);

  int64_t buckets_, classes_, columns_, width_;
  bool multi_label_;
  float characters_share_;                           // of the rate
  std::vector<double> class_weights_, log_weights_;  // by class; empty: all are equal
  ZeroPages<float> weights_, accumulators_;          // accumulators: less what they begin with, which is 1
  std::vector<AdaGradExample> batch_;
  std::vector<int64_t> borders_;       // of the buckets that threads update
  size_t divided_for_ = 0;             // how many examples the borders were found by
  std::vector<RowScratch> scratches_;  // by thread
};

}  // namespace capstan
