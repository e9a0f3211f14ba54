// The part of a batch that one of several ranks computes.
#pragma once

#include "data/batches/batcher.hpp"
#include "train/steps/lane_tree.hpp"

namespace capstan {

/// The lanes of a batch, and those of them that a rank computes.
struct BatchShare {
  int64_t rows = 0;  // of the whole batch
  LaneTree tree{1};
  LaneRange lanes;
};

/// The batches of a source, of each only the rows of this rank's lanes.
class RankBatches final : public BatchSource {
 public:
  /// `lanes`: train.lanes. The source must outlive it.
  RankBatches(const BatchSource& source, int64_t lanes, int rank, int ranks)
      : source_(source), lanes_(lanes), rank_(rank), ranks_(ranks) {}

  BatchShare share(int64_t epoch, int64_t index) const;

  int64_t examples_per_epoch() const override { return source_.examples_per_epoch(); }
  int64_t batches_per_epoch(int64_t epoch) const override { return source_.batches_per_epoch(epoch); }
  /// This rank's part of the batch; empty if it has no lane.
  Batch batch(int64_t epoch, int64_t index) const override;

 private:
  const BatchSource& source_;
  int64_t lanes_;
  int rank_, ranks_;
};

}  // namespace capstan
