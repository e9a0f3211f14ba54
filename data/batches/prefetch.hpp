// Reads batches in order, with the next ones prepared in a thread of their own: for training steps (BatchReader) and
// evaluation (Prefetcher). Results do not depend on it: tests/data/test_prefetch.cpp and
// tests/train/test_batch_reader.cpp.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/no_copy.hpp"
#include "data/batches/batcher.hpp"

namespace capstan {

/// Goes through the batches of a source in order, from (epoch, index) on and from one epoch into the next.
class Prefetcher : NoCopy {
 public:
  struct Options {
    int64_t epoch = 0, index = 0;  // the first batch; an index at the end of its epoch is the next epoch's first
    int64_t end_epoch = std::numeric_limits<int64_t>::max();
    int64_t depth = 2;  // batches ready at most; 0: no thread, batches are made when they are asked for
  };
  struct Prepared {
    int64_t epoch = 0, index = 0;
    Batch batch;
  };

  /// `source` must outlive it.
  Prefetcher(const BatchSource& source, const Options& options);
  ~Prefetcher();

  /// The next batch; none once end_epoch is reached. Throws what the source threw, after the batches in front of it.
  std::optional<Prepared> next();

 private:
  std::optional<Prepared> make();
  void run();

  const BatchSource& source_;
  int64_t epoch_, index_;  // the batch to be made next; touched by the thread alone while it runs
  const int64_t end_epoch_;
  const size_t depth_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Prepared> ready_;
  std::exception_ptr failure_;  // what the source threw; the thread has ended
  bool finished_ = false, stopping_ = false;
  std::thread thread_;
};

/// Prepares batches ahead of a reader that reads them in order. Reading any other batch restarts it there.
class BatchReader {
 public:
  /// `source` must outlive it. `depth` batches are prepared ahead on a separate thread; 0 = no thread.
  explicit BatchReader(const BatchSource& source, int64_t depth = 2) : source_(source), depth_(depth) {}

  /// Number of batches of this epoch.
  int64_t batches(int64_t epoch) const;
  /// Throws what the source throws.
  Batch batch(int64_t epoch, int64_t index);

 private:
  const BatchSource& source_;
  int64_t depth_;
  mutable std::map<int64_t, int64_t> counts_;  // per epoch: counting means planning the whole epoch
  std::unique_ptr<Prefetcher> prefetcher_;
  int64_t next_epoch_ = 0, next_index_ = 0;  // what the prefetcher returns next
};

}  // namespace capstan
