#include "train/steps/batch_reader.hpp"

#include "core/machine/profile.hpp"

namespace capstan {

int64_t BatchReader::batches(int64_t epoch) const {
  const auto known = counts_.find(epoch);
  if (known != counts_.end()) return known->second;
  return counts_[epoch] = source_.batches_per_epoch(epoch);
}

Batch BatchReader::batch(int64_t epoch, int64_t index) {
  const ProfileSpan span("data", Pass::none);
  if (prefetcher_ == nullptr || epoch != next_epoch_ || index != next_index_) {
    prefetcher_.reset();  // before the new one is made, or two threads would prepare at the same time
    Prefetcher::Options options;
    options.epoch = epoch;
    options.index = index;
    options.depth = depth_;
    prefetcher_ = std::make_unique<Prefetcher>(source_, options);
  }
  std::optional<Prefetcher::Prepared> prepared = prefetcher_->next();
  next_epoch_ = epoch;
  next_index_ = index + 1;
  if (next_index_ >= batches(epoch)) {
    ++next_epoch_;
    next_index_ = 0;
  }
  return std::move(prepared->batch);
}

}  // namespace capstan
