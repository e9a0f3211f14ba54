#include "data/batches/prefetch.hpp"

#include <doctest/doctest.h>

#include <atomic>

#include "core/base/error.hpp"

using namespace capstan;

namespace {

/// Epoch e has 3 + e batches; each holds its own place.
class Places final : public BatchSource {
 public:
  int64_t examples_per_epoch() const override { return 3; }
  int64_t batches_per_epoch(int64_t epoch) const override { return 3 + epoch; }
  Batch batch(int64_t epoch, int64_t index) const override {
    if (epoch == 7) throw Error("the file is gone");
    return {Ids(Shape{1, 1}, static_cast<int32_t>(100 * epoch + index)), Ids(), Ids(), Ids()};
  }
};

}  // namespace

TEST_CASE("a reader gives the batches that are asked for, in order, after jumps, and over epochs' ends") {
  const Places source;
  for (const int64_t depth : {0, 1, 3}) {
    BatchReader reader(source, depth);
    const auto check_place = [&](int64_t epoch, int64_t index) {
      CHECK(reader.batch(epoch, index).tokens[0] == 100 * epoch + index);
    };
    for (int64_t epoch = 0; epoch < 3; ++epoch)
      for (int64_t index = 0; index < reader.batches(epoch); ++index) check_place(epoch, index);
    for (int round = 0; round < 2; ++round)  // evaluation comes back to the start
      for (int64_t index = 0; index < reader.batches(0); ++index) check_place(0, index);
    check_place(2, 4);
    check_place(3, 0);
    check_place(1, 2);
    CHECK_THROWS_AS(reader.batch(7, 0), Error);
  }
}

namespace {

/// Counts the batches that it makes.
class CountedPlaces final : public BatchSource {
 public:
  int64_t examples_per_epoch() const override { return 5; }
  int64_t batches_per_epoch(int64_t) const override { return 5; }
  Batch batch(int64_t, int64_t index) const override {
    ++made;
    return {Ids(Shape{1, 1}, static_cast<int32_t>(index)), Ids(), Ids(), Ids()};
  }
  mutable std::atomic<int64_t> made{0};
};

}  // namespace

TEST_CASE("batches that are asked for in order are made once, over epochs' ends too") {
  for (const int64_t depth : {0, 1, 3}) {
    const CountedPlaces source;
    {
      BatchReader reader(source, depth);
      for (int64_t epoch = 0; epoch < 4; ++epoch)
        for (int64_t index = 0; index < 5; ++index) reader.batch(epoch, index);
    }
    INFO("depth ", depth);
    CHECK(source.made >= 20);
    CHECK(source.made <= 20 + depth + 1);  // what was prepared ahead at the end
  }
}
