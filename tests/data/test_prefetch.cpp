#include "data/batches/prefetch.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "core/base/error.hpp"
#include "support.hpp"

using namespace capstan;

namespace {

/// Epoch e has 3 + e batches; batch (e, i) holds the one token 100 e + i.
class Counting final : public BatchSource {
 public:
  int64_t examples_per_epoch() const override { return 5; }
  int64_t batches_per_epoch(int64_t epoch) const override { return 3 + epoch; }
  Batch batch(int64_t epoch, int64_t index) const override {
    ++made;
    if (epoch == 7 && index == 1) throw Error("the disk is gone");
    Batch result;
    result.tokens = Ids(Shape{1, 1}, static_cast<int32_t>(100 * epoch + index));
    return result;
  }
  mutable std::atomic<int> made{0};
};

void check_place(BatchReader& reader, int64_t epoch, int64_t index) {
  CHECK(reader.batch(epoch, index).tokens.item() == 100 * epoch + index);
}

}  // namespace

TEST_CASE("a reader gives the batches that are asked for, in order, after jumps, and over epochs' ends") {
  const Counting source;
  for (const int64_t depth : {0, 1, 3, 50}) {
    BatchReader reader(source, depth);
    for (int64_t epoch = 0; epoch < 3; ++epoch)
      for (int64_t index = 0; index < reader.batches(epoch); ++index) check_place(reader, epoch, index);
    for (int round = 0; round < 2; ++round)  // evaluation comes back to the start
      for (int64_t index = 0; index < reader.batches(0); ++index) check_place(reader, 0, index);
    for (const auto& [epoch, index] : {std::pair(2, 4), {3, 0}, {1, 2}}) check_place(reader, epoch, index);
  }
}

TEST_CASE("what the source throws reaches the reader, after the batches before it") {
  const Counting source;
  for (const int64_t depth : {0, 3}) {
    BatchReader reader(source, depth);
    check_place(reader, 7, 0);
    CHECK(message_of<Error>([&] { reader.batch(7, 1); }) == "the disk is gone");
    check_place(reader, 7, 2);
  }
}

TEST_CASE("batches are made once, over epochs' ends too, and as many ahead as they may be") {
  for (const int depth : {0, 1, 3}) {
    INFO("depth ", depth);
    const Counting source;
    {
      BatchReader reader(source, depth);
      for (int64_t epoch = 0; epoch < 4; ++epoch)
        for (int64_t index = 0; index < 3 + epoch; ++index) check_place(reader, epoch, index);
      for (int waited = 0; waited < 200 && source.made < 18 + depth; ++waited)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    CHECK(source.made == 18 + depth);
  }
}

TEST_CASE("no batch is made of the last epoch and later ones, but one that is asked for") {
  const Counting source;
  {
    BatchReader reader(source, 50, 2);
    for (const auto& [epoch, index] : {std::pair(0, 0), {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {1, 3}})
      check_place(reader, epoch, index);
  }
  CHECK(source.made == 7);
  BatchReader reader(source, 50, 2);
  check_place(reader, 2, 0);
  CHECK(source.made == 8);
}

TEST_CASE("a reader goes away while batches are made ahead") {
  const Counting source;
  for (int round = 0; round < 50; ++round) {
    BatchReader reader(source, 2);
    check_place(reader, 0, 0);
  }
}
