// Scales and weights of n-grams by bucket, as a linear classifier (models/linear_classifier) reads them.
// tests/nn/layers/test_ngram_table.cpp checks that a packed table gives the same bits as the whole one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/array/array.hpp"
#include "core/array/row_index.hpp"
#include "core/io/safetensors.hpp"
#include "nn/layers/text_ngrams.hpp"

namespace capstan::CAPSTAN_PRECISION {

struct NgramScratch;
class NgramScratches;

/// A scale and one weight per class for each bucket; cheap to copy. Buckets with scale 0 are left out: they add nothing
/// to a sum.
class NgramTable {
 public:
  /// scale: (buckets), weight: (buckets, C), to which this refers.
  NgramTable(NgramOrders orders, const Array& scale, const Array& weight);
  /// Copies the rows of buckets that are not left out, side by side. A text's rows are then close together, and most of
  /// a large table is neither in memory nor read.
  NgramTable(NgramOrders orders, const FileTensor& scale, const FileTensor& weight);

  int64_t buckets() const { return buckets_; }
  int64_t classes() const { return classes_; }
  /// The scale of a bucket's n-grams; 0 for a bucket that is left out.
  real scale(int64_t bucket) const;
  /// The bucket's C weights, one per class; null for a bucket that is left out.
  const real* weights(int64_t bucket) const;

  /// sums += x W / |x| for the n-grams of words and for those of characters, with C sums. x[f] = c(count of f)
  /// scale[f], c(n) = count_weight(n). Rows are added in the order of their buckets. Any number of threads may call it.
  void add_text(std::string_view text, double* sums) const;

 private:
  /// The number of a bucket's row; -1 for a bucket that is left out.
  int64_t row_of(int64_t bucket) const { return index_ == nullptr ? bucket : index_->place_of(bucket); }
  const real* row(int64_t number) const { return weight_ + number * weight_step_; }
  /// x (see add_text()) of an entry whose bucket() is the number of a row, before its block is divided by |x|.
  double value_of(const NgramCount& entry) const {
    return static_cast<double>(count_weight(entry.count())) * static_cast<double>(scale_[entry.bucket() * scale_step_]);
  }
  void add_block(std::vector<uint32_t>& rows, NgramScratch& scratch, double* sums) const;
  void add_rows(const std::vector<NgramCount>& counts, double* sums) const;
  template <int fours>
  void add_fours(const std::vector<NgramCount>& counts, double* sums) const;
  void add_scaled(const double* block, double squares, double* sums) const;

  NgramOrders orders_;
  int64_t buckets_, classes_;
  std::shared_ptr<const RowIndex> index_;      // null: all buckets have a row
  Array rows_;                                 // packed: (rows, 1 + C), a scale, then the weights
  std::shared_ptr<NgramScratches> scratches_;  // null: all buckets have a row
  const real *scale_, *weight_;
  int64_t scale_step_, weight_step_;  // between rows
};

}  // namespace capstan::CAPSTAN_PRECISION
