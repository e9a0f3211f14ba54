#include "train/loop/run_length.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "tests/support/texts.hpp"

namespace capstan {
namespace {

/// Epochs of different lengths; counts how often it was asked.
class Epochs final : public BatchSource {
 public:
  int64_t examples_per_epoch() const override { return 10; }
  int64_t batches_per_epoch(int64_t epoch) const override {
    ++asked;
    return 10 + epoch % 3;
  }
  Batch batch(int64_t, int64_t) const override { return {}; }

  mutable int64_t asked = 0;
};

TrainConfig config_of(int64_t epochs, int64_t steps, int64_t accumulate = 1) {
  TrainConfig config;
  config.epochs = epochs;
  config.steps = steps;
  config.accumulate = accumulate;
  return config;
}

TEST_CASE("run length: steps of whole epochs, cut by the number of steps") {
  const Epochs epochs;
  CHECK(total_steps(epochs, config_of(0, 7)) == 7);
  CHECK(total_steps(epochs, config_of(1, 0)) == 10);
  CHECK(total_steps(epochs, config_of(4, 0)) == 10 + 11 + 12 + 10);
  CHECK(total_steps(epochs, config_of(4, 21)) == 21);
  CHECK(total_steps(epochs, config_of(4, 15)) == 15);
  CHECK(total_steps(epochs, config_of(4, 100)) == 43);
  CHECK(total_steps(epochs, config_of(3, 0, 4)) == 3 + 3 + 3);
  CHECK(total_steps(epochs, config_of(3, 0, std::numeric_limits<int64_t>::max())) == 3);
}

TEST_CASE("run length: any number of epochs and steps takes a bounded time") {
  const Epochs epochs;
  const int64_t most = std::numeric_limits<int64_t>::max();
  CHECK(total_steps(epochs, config_of(most, 0)) > most / 8);
  CHECK(total_steps(epochs, config_of(most, 12345)) == 12345);
  CHECK(total_steps(epochs, config_of(1'000'000'000'000, 0)) >= 10'000'000'000'000);
  CHECK(total_steps(epochs, config_of(most, most)) > 0);
  fresh_tables_warning(epochs, config_of(0, most));
  fresh_tables_warning(epochs, config_of(most, 0));
  CHECK(epochs.asked < 2000);
}

class Examples final : public BatchSource {
 public:
  explicit Examples(int64_t count) : count_(count) {}
  int64_t examples_per_epoch() const override { return count_; }
  int64_t batches_per_epoch(int64_t) const override { return (count_ + 31) / 32; }
  Batch batch(int64_t, int64_t) const override { return {}; }

 private:
  int64_t count_;
};

TEST_CASE("run length: evaluations that are left open read at most a tenth as many examples as training") {
  const Examples train(108000), valid(12000), few(1000);
  TrainConfig config;
  const auto interval = [&](const BatchSource* held_out, int64_t total) {
    config.steps = total;
    return evaluation_interval(train, held_out, config);
  };
  CHECK(interval(&valid, 0) == 3750);  // 120,000 examples
  CHECK(interval(&few, 0) == 500);     // and 313 would do
  CHECK(interval(nullptr, 0) == 500);
  // Evenly, with the last one at the end.
  CHECK(interval(&valid, 13500) == 4500);
  CHECK(interval(&valid, 7499) == 7499);
  CHECK(interval(&valid, 3749) == 3749);
  CHECK(interval(&few, 1300) == 650);
  config.accumulate = 5;
  CHECK(interval(&valid, 0) == 750);
  config.valid_every = 3;
  CHECK(interval(&valid, 13500) == 3);
  config.valid_every = 0;
  CHECK(interval(&valid, 13500) == 0);
}

TEST_CASE("run length: a run that ends within an epoch after the second, or early in that, is warned about") {
  const Epochs epochs;
  const auto warning = fresh_tables_warning(epochs, config_of(0, 23));
  REQUIRE(warning);
  check_contains(*warning, {"train.epochs: 2", "only 2 of its 12 steps"});
  const auto later = fresh_tables_warning(epochs, config_of(0, 28));
  REQUIRE(later);
  CHECK(contains(*later, "only 7 of its 12 steps"));
  CHECK(fresh_tables_warning(epochs, config_of(0, 15)));
  CHECK_FALSE(fresh_tables_warning(epochs, config_of(0, 17)));
  CHECK_FALSE(fresh_tables_warning(epochs, config_of(0, 5)));
  CHECK_FALSE(fresh_tables_warning(epochs, config_of(2, 0)));
}

}  // namespace
}  // namespace capstan
