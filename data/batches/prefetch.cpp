// A future per batch, in the order in which they are read, so results are those of a run without threads. An exception
// of the source waits in the future for its reader. tests/data/test_prefetch.cpp.
#include "data/batches/prefetch.hpp"

#include "core/base/error.hpp"
#include "core/machine/profile.hpp"

namespace capstan {

int64_t BatchReader::batches(int64_t epoch) const {
  const auto known = counts_.find(epoch);
  if (known != counts_.end()) return known->second;
  return counts_[epoch] = source_.batches_per_epoch(epoch);
}

BatchReader::Place BatchReader::after(const Place& place) const {
  const auto [epoch, index] = place;
  return index + 1 < batches(epoch) ? Place{epoch, index + 1} : Place{epoch + 1, 0};
}

Batch BatchReader::batch(int64_t epoch, int64_t index) {
  const ProfileSpan span("data", Pass::none);
  const Place wanted{epoch, index};
  if (ahead_.empty() || ahead_.front().first != wanted) {
    ahead_.clear();
    next_ = wanted;
  }
  const std::launch how = depth_ > 0 ? std::launch::async : std::launch::deferred;
  while (static_cast<int64_t>(ahead_.size()) <= depth_ && (next_ == wanted || next_.first < end_epoch_)) {
    ahead_.emplace_back(next_, std::async(how, [this, at = next_] { return source_.batch(at.first, at.second); }));
    next_ = after(next_);
  }
  std::future<Batch> made = std::move(ahead_.front().second);
  ahead_.pop_front();
  return made.get();
}

}  // namespace capstan
