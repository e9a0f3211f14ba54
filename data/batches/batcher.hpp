// Batches as pure functions of (seed, epoch, index): a training run resumes by storing the last two. The interface of
// all sources of batches (BatchSource), which train/ reads, and the batches of labelled examples. The order that a seed
// gives must not change, or runs go on with other batches: tests/data/test_batches.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/array/batch.hpp"
#include "core/base/random.hpp"
#include "core/config/schema.hpp"
#include "data/batches/example_set.hpp"

namespace capstan {

struct BatchConfig {
  int64_t batch_size = 32;
  int64_t batch_tokens = 0;

  /// Rows of a batch whose rows all have this length.
  int64_t rows_of_length(int64_t length) const {
    return batch_tokens > 0 ? std::max<int64_t>(1, batch_tokens / length) : batch_size;
  }
};
template <class Fields>
void describe(Fields& f, BatchConfig& c) {
  f("batch_size", c.batch_size, size_from(1), "examples per batch");
  f("batch_tokens", c.batch_tokens, size_from(0),
    "used instead of batch_size: as many examples as fit into this many tokens, padding included");
}

/// Rows and columns of a batch, padding included.
struct BatchExtent {
  int64_t rows = 0, columns = 0;
};

/// Rows [begin, end) of a batch; shares its memory.
Batch rows_of(const Batch& batch, int64_t begin, int64_t end);

/// The batch in pieces of whole rows, each of at most `tokens` tokens (padding included) or of one row; the whole batch
/// when `tokens` is 0. Pieces share the batch's memory.
std::vector<Batch> split_rows(const Batch& batch, int64_t tokens);

/// A source of batches. batch(e, i) does not depend on earlier calls. Safe to call from several threads.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual int64_t examples_per_epoch() const = 0;
  virtual int64_t batches_per_epoch(int64_t epoch) const = 0;
  /// Throws std::invalid_argument for an index outside the epoch.
  virtual Batch batch(int64_t epoch, int64_t index) const = 0;

  /// The size of batch(epoch, index). This and rows() serve ranks that compute a part of a batch; sources that can make
  /// a part without the rest override both.
  virtual BatchExtent extent(int64_t epoch, int64_t index) const;
  /// Rows [begin, end) of batch(epoch, index), as wide as all of it.
  virtual Batch rows(int64_t epoch, int64_t index, int64_t begin, int64_t end) const;
};

/// How an epoch is cut: batch i holds order[starts[i]] ... order[starts[i + 1] - 1].
struct BatchPlan {
  std::vector<int64_t> order;
  std::vector<int64_t> starts{0};
  int64_t batches() const { return static_cast<int64_t>(starts.size()) - 1; }
};

/// The plan of the epoch that was asked for last. Safe to use from several threads.
class EpochPlan {
 public:
  /// The plan of `epoch`: that of the last call if the epoch is equal, else the result of make().
  std::shared_ptr<const BatchPlan> of(int64_t epoch, const std::function<BatchPlan()>& make) const {
    const std::lock_guard lock(mutex_);
    if (epoch != epoch_) plan_ = std::make_shared<const BatchPlan>(make());
    epoch_ = epoch;
    return plan_;
  }

 private:
  mutable std::mutex mutex_;
  mutable int64_t epoch_ = -1;
  mutable std::shared_ptr<const BatchPlan> plan_;
};

/// Cuts `order` into batches of config's size, one after the other; length(entry) is the number of tokens of an entry
/// of `order`. A batch has at least one entry, whatever its length.
template <class Length>
BatchPlan cut_batches(std::vector<int64_t> order, const BatchConfig& config, const Length& length) {
  BatchPlan plan;
  int64_t longest = 0, begin = 0;
  const auto count = static_cast<int64_t>(order.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t tokens = length(order[static_cast<size_t>(i)]), widened = tokens > longest ? tokens : longest;
    const bool full =
        config.batch_tokens > 0 ? (i - begin + 1) * widened > config.batch_tokens : i - begin >= config.batch_size;
    if (full && i > begin) {
      plan.starts.push_back(i);
      begin = i;
      longest = tokens;
    } else {
      longest = widened;
    }
  }
  if (count > 0) plan.starts.push_back(count);
  plan.order = std::move(order);
  return plan;
}

/// Batches of the entries 0 ... count - 1, the longest first, entries of equal length in their order.
BatchPlan plan_longest_first(int64_t count, const BatchConfig& config, const std::function<int64_t(int64_t)>& length);

/// Throws std::invalid_argument for an index outside an epoch of `batches` batches.
void check_batch_index(int64_t index, int64_t batches);

/// Batches of labelled examples, every one in exactly one batch of an epoch. With a seed, for training with little
/// padding: the epoch's examples are permuted, sorted by length within chunks of 64 batches, cut, and the batches
/// permuted. Without one, for evaluation: the longest first. Batch::examples = the place of the example in the permuted
/// order, which without a seed is its own index.
class ExampleBatches final : public BatchSource {
 public:
  /// `examples` must outlive it. Throws std::invalid_argument for a seed but no examples.
  ExampleBatches(const ExampleSet& examples, const BatchConfig& config, std::optional<uint64_t> seed);

  int64_t examples_per_epoch() const override { return examples_.size(); }
  int64_t batches_per_epoch(int64_t epoch) const override { return plan(epoch)->batches(); }
  Batch batch(int64_t epoch, int64_t index) const override;
  BatchExtent extent(int64_t epoch, int64_t index) const override;
  Batch rows(int64_t epoch, int64_t index, int64_t begin, int64_t end) const override;
  /// The example at a place of an epoch's order.
  int64_t example(int64_t epoch, int64_t place) const;

 private:
  std::shared_ptr<const BatchPlan> plan(int64_t epoch) const;
  /// The examples' places in the permuted order.
  std::vector<int64_t> places(int64_t epoch, int64_t index) const;

  const ExampleSet& examples_;
  BatchConfig config_;
  std::optional<uint64_t> seed_;
  EpochPlan plan_;
};

/// A batch of shape (rows.size(), longest row, or `width` if that is more) with tokens, and segment ids 1 for tokens
/// and 0 for padding; labels are left to the caller.
Batch pad_rows(const std::vector<std::vector<int32_t>>& rows, int64_t width = 0);

/// Hands on all rows in padded groups, the longest first: take(indices of the group's rows, the group). A group has at
/// most 16,384 tokens, padding included, or one row: no row makes many others as long as itself.
void for_padded_groups(const std::vector<std::vector<int32_t>>& rows,
                       const std::function<void(const std::vector<int64_t>& indices, const Batch& group)>& take);

}  // namespace capstan
