// Learns the weights of a linear classifier by epochs of AdaGrad over its rows, for fit_adagrad.cpp. Gradients of a
// batch of rows are computed with the same weights, and each bucket is updated in the order of the rows, so the bits do
// not depend on threads: tests/train/linear/test_fit_adagrad.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/io/file.hpp"
#include "core/io/progress.hpp"
#include "train/linear/ngram_rows.hpp"
#include "train/linear/work_file.hpp"

namespace capstan {

/// The third gains little, so there is no fourth (docs/notes/ngrams.md).
constexpr int adagrad_epochs = 3;

// What OnlineClassifier does alike.
/// The share of the rate for n-grams of characters: a text has many more of them than of words.
constexpr float characters_share = 0.5F;
constexpr int64_t floats_per_vector = 8;  // the weights of a bucket are a multiple, for vector instructions
constexpr size_t rows_ahead = 8;          // rows of the table that are fetched before they are needed
constexpr float initial_accumulator = 1;  // where the sums of squared gradients begin
/// The weights of a bucket, for so many scores of a row.
constexpr int64_t width_of(int64_t columns) {
  return columns == 1 ? 1 : (columns + floats_per_vector - 1) / floats_per_vector * floats_per_vector;
}

/// How far AdaGrad is, as a file of unfinished work has it.
struct AdaGradPosition {
  int64_t of_sample = 1;           // 1: over the sample; 0: over all texts
  int64_t epoch = 0, row = 0;      // the next ones
  double inverse_temperature = 1;  // of two classes: what scores are multiplied by to become logits
  bool is_possible() const { return epoch >= 0 && epoch < adagrad_epochs && row >= 0; }
};

/// AdaGrad with one accumulator, a sum of squared gradients, for each bucket. Threads compute rows with the same
/// weights. Then each thread updates some of the buckets, in the order of the rows.
class AdaGradSolver {
 public:
  /// `rows` must outlive it.
  AdaGradSolver(const NgramRows& rows, uint64_t seed);

  /// Learns from some rows from where `position` is, at first with weights of zero. Of two classes, the
  /// logits are supposed to be position.inverse_temperature times the scores. `save` is called between batches. May
  /// stop.
  void run(const std::vector<uint32_t>& learnt, double rate, AdaGradPosition& position, double work, Progress* progress,
           const std::function<void()>& save);

  /// Writes the weights and accumulators of buckets that are in use.
  void write(FileWriter& to) const;
  /// Reads what write() has written; returns false where the file has less.
  bool read(WorkFile::Saved& from);

  /// The scores x W of some rows, (rows, columns). May stop.
  std::vector<float> scores(const std::vector<uint32_t>& some_rows) const;
  /// The logits of a row, (classes): inverse_temperature times its scores, plus the log priors.
  std::vector<double> logits(const float* scores, double inverse_temperature) const;
  /// The share of words among the n-grams of the rows that were read last.
  double share_of_words() const;
  /// Writes inverse_temperature times the weights to the parameters, (buckets, classes). The solver has none
  /// afterwards.
  void take(double inverse_temperature, real* weight);

 private:
  enum class Loss { softmax, hinge, logistic };
  struct Row {
    RowValues values;
    std::vector<float> gradients;  // of the loss by the scores
    float squares = 0;             // sum of the squares of the gradients
  };

  /// Calls visit(bucket) for buckets that are in use.
  template <class Visit>
  void for_used(const Visit& visit) const {
    for (int64_t f = 0; f < rows_.config().buckets; ++f)
      if (rows_.scale()[static_cast<size_t>(f)] != 0) visit(f);
  }
  void learn(const std::vector<uint32_t>& batch_rows, float rate);
  void read_batch(const std::vector<uint32_t>& batch_rows);
  void divide_buckets(int64_t count);
  void score(const std::vector<NgramValue>& row, float* out) const;
  void update(const NgramValues& part, const Row& row, float share, float rate);
  void scores_to_gradients(int64_t row_number, Row& row) const;

  const NgramRows& rows_;
  uint64_t seed_;
  Loss loss_;
  int64_t columns_, width_;          // scores of a row (with two classes one); weights of a bucket
  float characters_share_;           // of the rate, for n-grams of characters
  double inverse_temperature_ = 1;   // AdaGradPosition::inverse_temperature
  std::vector<double> log_priors_;   // by column
  std::vector<double> log_weights_;  // of the classes, by column; none without
  std::vector<float> weights_;       // (buckets, width)
  std::vector<float> accumulators_;  // by bucket
  std::vector<Row> batch_;
  std::vector<int64_t> borders_;       // of the buckets that threads update
  std::vector<RowScratch> scratches_;  // by thread
};

}  // namespace capstan
