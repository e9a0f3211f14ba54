#include "train/rank_steps/rank_batches.hpp"

#include "train/steps/lanes.hpp"

namespace capstan {

BatchShare RankBatches::share(int64_t epoch, int64_t index) const {
  const BatchExtent extent = source_.extent(epoch, index);
  const LaneTree tree(lane_count(extent.rows, extent.columns, lanes_));
  return {extent.rows, tree, tree.lanes_of(rank_, ranks_)};
}

Batch RankBatches::batch(int64_t epoch, int64_t index) const {
  const BatchShare own = share(epoch, index);
  if (own.lanes.size() == 0) return {};
  return source_.rows(epoch, index, lane_begin(own.rows, own.tree.lanes(), own.lanes.begin),
                      lane_begin(own.rows, own.tree.lanes(), own.lanes.end));
}

}  // namespace capstan
