// Scales and weights of n-grams by bucket.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/array/array.hpp"
#include "core/io/safetensors.hpp"
#include "nn/layers/text_ngrams.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// A scale and one weight per class for each bucket; cheap to copy. Buckets with scale 0 are left out: they add nothing
/// to a sum.
class NgramTable {
 public:
  /// scale: (buckets), weight: (buckets, C), to which this refers.
  NgramTable(const Array& scale, const Array& weight);
  /// Copies the rows of buckets that are not left out, side by side. A text's rows are then close together, and most of
  /// a large table is neither in memory nor read.
  NgramTable(const FileTensor& scale, const FileTensor& weight);

  int64_t buckets() const { return buckets_; }
  int64_t classes() const { return classes_; }
  /// 0 for a bucket that is left out.
  real scale(int64_t bucket) const;
  /// C weights; null for a bucket that is left out.
  const real* weights(int64_t bucket) const;

  /// sums += x W / |x|, x[f] = c(count of f) scale[f], with c(n) = count_weight(n) and C sums. `found`: the buckets of
  /// n-grams, one for each time that they occur; its content is used up. Rows are added in the order of their buckets.
  void add_block(std::vector<uint32_t>& found, double* sums) const;

 private:
  /// Which of 64 buckets are not left out, and the number of such buckets before them.
  struct Group {
    uint64_t here, before;
  };
  /// The number of a bucket's row; -1 for a bucket that is left out.
  int64_t row_of(int64_t bucket) const {
    if (groups_ == nullptr) return bucket;
    const Group& group = (*groups_)[static_cast<size_t>(bucket >> 6)];
    const uint64_t bit = uint64_t{1} << (bucket & 63);
    return (group.here & bit) == 0 ? -1
                                   : static_cast<int64_t>(group.before) + __builtin_popcountll(group.here & (bit - 1));
  }
  const real* row(int64_t number) const { return weight_ + number * weight_step_; }
  /// x of an entry whose bucket is the number of a row, before its block is scaled.
  double value_of(const NgramCount& entry) const {
    return static_cast<double>(count_weight(entry.count())) * static_cast<double>(scale_[entry.bucket() * scale_step_]);
  }
  void add_rows(const std::vector<NgramCount>& counts, double* sums) const;
  template <int fours>
  void add_fours(const std::vector<NgramCount>& counts, double* sums) const;
  void add_scaled(const double* block, double squares, double* sums) const;

  int64_t buckets_, classes_;
  std::shared_ptr<const std::vector<Group>> groups_;  // null: all buckets have a row
  Array rows_;                                        // a scale, then the weights
  const real *scale_, *weight_;
  int64_t scale_step_, weight_step_;  // between rows
};

}  // namespace capstan::CAPSTAN_PRECISION
