// Reads the batches of a source in the order of training.
#pragma once

#include <map>
#include <memory>

#include "data/batches/prefetch.hpp"

namespace capstan {

/// Prepares batches ahead of a reader that reads them in order. Reading any other batch restarts it there.
class BatchReader {
 public:
  /// `source` must outlive it. `depth` batches are prepared ahead on a separate thread; 0 = no thread.
  explicit BatchReader(const BatchSource& source, int64_t depth = 2) : source_(source), depth_(depth) {}

  /// Number of batches of this epoch.
  int64_t batches(int64_t epoch) const;
  Batch batch(int64_t epoch, int64_t index);

 private:
  const BatchSource& source_;
  int64_t depth_;
  mutable std::map<int64_t, int64_t> counts_;  // per epoch: counting means planning the whole epoch
  std::unique_ptr<Prefetcher> prefetcher_;
  int64_t next_epoch_ = 0, next_index_ = 0;  // what the prefetcher returns next
};

}  // namespace capstan
