// The weights of a linear classifier that passes over its rows change.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "core/io/file.hpp"
#include "core/io/progress.hpp"
#include "train/linear/ngram_rows.hpp"
#include "train/linear/work_file.hpp"

namespace capstan {

constexpr int passes = 3;

/// How far the passes are.
struct PassPlace {
  bool of_sample = true;  // or of all texts
  int64_t pass = 0, row = 0;
  double factor = 1;

  std::vector<int64_t> numbers() const {
    int64_t bits = 0;
    std::memcpy(&bits, &factor, sizeof(bits));
    return {of_sample ? 1 : 0, pass, row, bits};
  }
  bool take(const std::vector<int64_t>& saved) {
    if (saved.size() != 4 || saved[1] < 0 || saved[1] >= passes || saved[2] < 0) return false;
    of_sample = saved[0] == 1;
    pass = saved[1];
    row = saved[2];
    std::memcpy(&factor, &saved[3], sizeof(factor));
    return true;
  }
};

/// AdaGrad with one sum of squares for each bucket. Threads compute rows with the same weights, and then update buckets
/// of their own in the order of the rows.
class PassSolver {
 public:
  PassSolver(const NgramRows& rows, uint64_t seed);

  /// Passes over some rows from where `place` is, at first with weights of zero. Of two classes, the logits are
  /// supposed to be place.factor times the scores. `save` is called between batches. May stop.
  void run(const std::vector<uint32_t>& learnt, double rate, PassPlace& place, double work, Progress* progress,
           const std::function<void()>& save);

  /// The weights and sums of buckets that are in use.
  void write(FileWriter& to) const;
  /// False where there is less.
  bool read(WorkFile::Saved& from);

  /// x W of some rows, (rows, columns).
  std::vector<float> scores(const std::vector<uint32_t>& of) const;
  /// Of scores x W.
  std::vector<double> logits(const float* scores, double factor) const;
  /// Of the n-grams of the rows that were read last, how many are of words.
  double share_of_words() const;
  /// Moves the weights to the parameters: (buckets, classes).
  void take(double factor, real* weight);

 private:
  enum class Loss { softmax, hinge, logistic };
  struct Row {
    RowValues values;
    std::vector<float> slopes;  // of the loss, by score
    float squares = 0;          // of these
  };
  using Part = std::pair<const NgramValue*, const NgramValue*>;

  template <class Visit>
  void for_used(const Visit& visit) const;
  template <class RowOf>
  void learn(const RowOf& row_of, int64_t count, float rate);
  void divide_buckets(int64_t count);
  Part part_of(const NgramValue* first, const NgramValue* last, int64_t begin, int64_t end) const;
  void score(const std::vector<NgramValue>& row, float* out) const;
  void update(const Part& part, const Row& row, float share, float rate);
  void scores_to_slopes(int64_t of, Row& row) const;

  const NgramRows& rows_;
  uint64_t seed_;
  Loss loss_;
  int64_t columns_, width_;
  float characters_share_;
  double factor_ = 1;
  std::vector<double> shares_;  // their logits, by column
  std::vector<double> shifts_;  // that weights of classes make; none without
  std::vector<float> weights_;  // (buckets, width)
  std::vector<float> sums_;     // of squares, by bucket
  std::vector<Row> batch_;
  std::vector<int64_t> borders_;       // of the buckets that threads update
  std::vector<RowScratch> scratches_;  // by thread
};

}  // namespace capstan
