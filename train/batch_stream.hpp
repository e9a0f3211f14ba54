// Where the loop gets its batches from.
#pragma once

#include <cstdint>
#include <vector>

#include "data/batch.hpp"

namespace capstan {

/// The batches of a split. Both functions are pure (of their arguments, the data and the run's seed), so a place in the
/// data is two numbers. The loop asks in order, so an implementation may prepare the next batches in the background.
class BatchStream {
 public:
  virtual ~BatchStream() = default;
  /// Number of batches of this epoch.
  virtual int64_t batches(int64_t epoch) const = 0;
  virtual Batch batch(int64_t epoch, int64_t index) = 0;
};

/// The batch in pieces of whole rows, each of at most `tokens` tokens (padding included) or of one row; the whole batch
/// when `tokens` is 0. Pieces share the batch's memory.
std::vector<Batch> split_rows(const Batch& batch, int64_t tokens);

}  // namespace capstan
