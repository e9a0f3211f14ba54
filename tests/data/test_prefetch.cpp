#include "data/batches/prefetch.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "core/base/error.hpp"
#include "support.hpp"

using namespace capstan;

namespace {

/// Batch (e, i) holds the one token 100 e + i.
class Counting final : public BatchSource {
 public:
  int64_t examples_per_epoch() const override { return 5; }
  int64_t batches_per_epoch(int64_t epoch) const override { return 3 + epoch; }
  Batch batch(int64_t epoch, int64_t index) const override {
    ++made;
    if (epoch == fail_epoch && index == 1) throw Error("the disk is gone");
    Batch result;
    result.tokens = Ids(Shape{1, 1}, static_cast<int32_t>(100 * epoch + index));
    return result;
  }
  int64_t fail_epoch = -1;
  mutable std::atomic<int> made{0};
};

std::vector<int32_t> all_tokens(const Counting& source, const Prefetcher::Options& options) {
  Prefetcher prefetcher(source, options);
  std::vector<int32_t> tokens;
  while (const auto prepared = prefetcher.next()) {
    CHECK(prepared->batch.tokens.item() == 100 * prepared->epoch + prepared->index);
    tokens.push_back(prepared->batch.tokens.item());
  }
  CHECK_FALSE(prefetcher.next().has_value());
  return tokens;
}

}  // namespace

TEST_CASE("prefetched batches come in order, across epochs, from anywhere") {
  const Counting source;
  for (const int64_t depth : {0, 1, 2, 50}) {
    CHECK(all_tokens(source, {0, 0, 2, depth}) == std::vector<int32_t>{0, 1, 2, 100, 101, 102, 103});
    CHECK(all_tokens(source, {1, 2, 2, depth}) == std::vector<int32_t>{102, 103});
    CHECK(all_tokens(source, {0, 3, 2, depth}) == std::vector<int32_t>{100, 101, 102, 103});
    CHECK(all_tokens(source, {2, 0, 2, depth}).empty());
  }
}

TEST_CASE("what the source throws reaches the consumer, after the batches before it") {
  Counting source;
  source.fail_epoch = 0;
  for (const int64_t depth : {0, 3}) {
    Prefetcher prefetcher(source, {0, 0, 1, depth});
    CHECK(prefetcher.next()->index == 0);
    CHECK(message_of<Error>([&] { prefetcher.next(); }) == "the disk is gone");
  }
}

TEST_CASE("a prefetcher makes no more batches than it may") {
  const Counting source;
  Prefetcher prefetcher(source, {0, 0, 1000, 2});
  prefetcher.next();
  for (int waited = 0; waited < 200 && source.made < 4; ++waited)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(source.made == 4);  // one taken, two ready, one waiting for its place
}

TEST_CASE("a prefetcher goes away while its queue is full") {
  const Counting source;
  for (int round = 0; round < 50; ++round) {
    Prefetcher prefetcher(source, {0, 0, 1000, 2});
    if (round % 2 == 0) prefetcher.next();
  }
}

TEST_CASE("a source without batches is refused instead of searched for ever") {
  class Empty final : public BatchSource {
    int64_t examples_per_epoch() const override { return 0; }
    int64_t batches_per_epoch(int64_t) const override { return 0; }
    Batch batch(int64_t, int64_t) const override { return {}; }
  };
  const Empty source;
  for (const int64_t depth : {0, 2}) {
    Prefetcher prefetcher(source, {0, 0, 10, depth});
    CHECK_THROWS_AS(prefetcher.next(), std::invalid_argument);
  }
}
