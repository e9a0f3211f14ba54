// Reads batches in order, with the next ones made meanwhile on threads of their own: for training steps and evaluation.
// Results do not depend on it: tests/data/test_prefetch.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <limits>
#include <map>
#include <utility>

#include "core/base/no_copy.hpp"
#include "data/batches/batcher.hpp"

namespace capstan {

/// Makes batches ahead of a reader that reads them in order. Reading any other batch restarts it there.
class BatchReader : NoCopy {
 public:
  /// `source` must outlive it. `depth`: batches that are made ahead; 0: no threads, batches are made when they are
  /// asked for. None is made of `end_epoch` and later ones.
  explicit BatchReader(const BatchSource& source, int64_t depth = 2,
                       int64_t end_epoch = std::numeric_limits<int64_t>::max())
      : source_(source), depth_(depth), end_epoch_(end_epoch) {}

  /// Number of batches of this epoch.
  int64_t batches(int64_t epoch) const;
  /// Throws what the source throws.
  Batch batch(int64_t epoch, int64_t index);

 private:
  using Place = std::pair<int64_t, int64_t>;  // epoch and index
  Place after(const Place& place) const;

  const BatchSource& source_;
  const int64_t depth_, end_epoch_;
  mutable std::map<int64_t, int64_t> counts_;  // per epoch: counting means planning the whole epoch
  Place next_;                                 // the batch that is begun next
  std::deque<std::pair<Place, std::future<Batch>>> ahead_;
};

}  // namespace capstan
