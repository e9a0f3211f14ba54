// Prefetcher: one thread makes batches into a queue of limited length, in order, so results are those of a run without
// it. An exception of the source is thrown by next(), after the batches made before it. tests/data/test_prefetch.cpp.
#include "data/batches/prefetch.hpp"

#include "core/base/error.hpp"
#include "core/machine/profile.hpp"

namespace capstan {

Prefetcher::Prefetcher(const BatchSource& source, const Options& options)
    : source_(source),
      epoch_(options.epoch),
      index_(options.index),
      end_epoch_(options.end_epoch),
      depth_(static_cast<size_t>(options.depth)) {
  check(options.epoch >= 0 && options.index >= 0 && options.depth >= 0, "prefetch: negative epoch, index or depth");
  if (depth_ > 0) thread_ = std::thread([this] { run(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::optional<Prefetcher::Prepared> Prefetcher::make() {
  while (epoch_ < end_epoch_) {
    const int64_t batches = source_.batches_per_epoch(epoch_);
    check(batches > 0, "prefetch: epoch {} has no batches", epoch_);
    if (index_ < batches) {
      Prepared prepared{epoch_, index_, source_.batch(epoch_, index_)};
      ++index_;
      return prepared;
    }
    ++epoch_;
    index_ = 0;
  }
  return std::nullopt;
}

void Prefetcher::run() {
  for (;;) {
    std::optional<Prepared> prepared;
    std::exception_ptr failure;
    try {
      prepared = make();
    } catch (...) {
      failure = std::current_exception();
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopping_ || ready_.size() < depth_; });
    if (stopping_) return;
    if (prepared) ready_.push_back(std::move(*prepared));
    failure_ = failure;
    finished_ = !prepared;
    changed_.notify_all();
    if (finished_) return;
  }
}

std::optional<Prefetcher::Prepared> Prefetcher::next() {
  if (depth_ == 0) return make();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty() || finished_; });
  if (ready_.empty()) {  // batches that were made before a failure have been handed out
    if (failure_) std::rethrow_exception(failure_);
    return std::nullopt;
  }
  Prepared prepared = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return prepared;
}

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
