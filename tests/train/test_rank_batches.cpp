// Ranks read the rows of their lanes: together the batch, whatever its size.
#include "train/rank_steps/rank_gradients.hpp"

#include <doctest/doctest.h>

namespace capstan {
namespace {

/// Batch i of an epoch has 9 - 3 i rows of two tokens, which say where they are from.
class Shrinking final : public BatchSource {
 public:
  int64_t examples_per_epoch() const override { return 9 + 6 + 3; }
  int64_t batches_per_epoch(int64_t) const override { return 3; }
  Batch batch(int64_t epoch, int64_t index) const override {
    const int64_t rows = 9 - 3 * index;
    Batch batch;
    batch.tokens = batch.segment_ids = batch.labels = Ids(Shape{rows, 2}, 1);
    batch.examples = Ids(Shape{rows});
    for (int64_t row = 0; row < rows; ++row)
      batch.examples.mutable_data()[row] = static_cast<int32_t>(100 * epoch + 10 * index + row);
    return batch;
  }
};

TEST_CASE("the rows of all ranks are those of the batch, in its order") {
  const Shrinking source;
  for (const int ranks : {1, 2, 3, 5})
    for (const int64_t epoch : {0, 1, 2})
      for (int64_t index = 0; index < source.batches_per_epoch(epoch); ++index) {
        CAPTURE(ranks);
        CAPTURE(epoch);
        CAPTURE(index);
        std::vector<int32_t> found;
        for (int rank = 0; rank < ranks; ++rank) {
          const RankBatches batches(source, /*lanes=*/5, rank, ranks);
          const BatchShare share = batches.share(epoch, index);
          CHECK(share.rows == 9 - 3 * index);
          const std::vector<int32_t> part =
              share.lanes.size() == 0 ? std::vector<int32_t>{} : batches.batch(epoch, index).examples.to_vector();
          CHECK(part.empty() == (share.lanes.size() == 0));
          found.insert(found.end(), part.begin(), part.end());
        }
        CHECK(found == source.batch(epoch, index).examples.to_vector());
      }
}

}  // namespace
}  // namespace capstan
