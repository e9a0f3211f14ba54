// Loss and accuracy over a split: what they do not depend on, and how many batches run at once.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/autograd/tape.hpp"
#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"
#include "core/ops/ops.hpp"
#include "tests/support/threads.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/support.hpp"

using namespace capstan;
using namespace capstan::testing;

TEST_CASE("evaluation does not depend on its batches") {
  ParamStore params;
  const LookupTask task(params, 11, false);
  DrawnBatches small, large;
  small.rows = 3;
  small.count = 8;
  large.rows = 12;
  large.count = 2;
  const auto a = evaluate(task, small), b = evaluate(task, large), c = evaluate(task, large, 10);
  CHECK(a.targets == b.targets);
  CHECK(a.correct == b.correct);
  CHECK(a.loss() == doctest::Approx(b.loss()).epsilon(1e-6));
  CHECK(c.loss() == doctest::Approx(b.loss()).epsilon(1e-6));
}

TEST_CASE("the standard error of a loss follows from how much the batches differ") {
  Evaluation total;
  for (const double loss : {1.0, 2.0, 3.0, 6.0}) total.add(Evaluation::of_batch(10 * loss, 10, 0));
  // Of four equal batches, the deviations from the mean, 3, are 2, 1, 0 and 3.
  CHECK(total.standard_error().value() == doctest::Approx(std::sqrt(14.0) / 4));
  CHECK_FALSE(Evaluation::of_batch(7, 3, 1).standard_error());
  CHECK_FALSE(Evaluation{}.standard_error());
  total.add(Evaluation::of_batch(NAN, 10, 0));
  CHECK_FALSE(total.standard_error());
}

TEST_CASE("an evaluation stops between two operations of a batch") {
  /// One text that takes as many operations as it may.
  struct Endless final : Task {
    mutable std::atomic<int> operations{0};
    TaskLoss loss(const Batch&, const Context&) const override {
      Var sum(Array(Shape{1}, real{0}));
      for (; operations < 1'000'000; ++operations) sum = sum + Var(Array(Shape{1}, real{1}));
      return {sum, 1, 0};
    }
  };
  const Endless task;
  const StopPoll after_ten = [&] { return task.operations >= 10; };
  const StopScope scope(&after_ten);
  DrawnBatches batches;
  CHECK_THROWS_AS(evaluate(task, batches), Stopped);
  CHECK(task.operations < 1000);
}

TEST_CASE("evaluation: batches at once have 131,072 tokens, and one batch more") {
  struct OneByOne final : BatchSource {
    int64_t examples_per_epoch() const override { return 3; }
    int64_t batches_per_epoch(int64_t) const override { return 3; }
    Batch batch(int64_t, int64_t index) const override {
      const Shape shape{1, index == 1 ? int64_t{1} << 17 : 1};
      return {Ids(shape, 0), Ids(shape, 1), Ids(shape, 0), Ids({1}, static_cast<int32_t>(index))};
    }
  };
  struct LateTask final : Task {
    mutable std::atomic<bool> large_done{false}, last_was_early{false};
    TaskLoss loss(const Batch& batch, const Context&) const override {
      if (batch.examples[0] == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        large_done = true;
      } else if (batch.examples[0] == 2) {
        last_was_early = !large_done;
      }
      return {Var(Array::scalar(1)), 1, 0};
    }
  };
  const Threads threads_used(3);
  const LateTask task;
  CHECK(evaluate(task, OneByOne()).targets == 3);
  CHECK_FALSE(task.last_was_early);
}

TEST_CASE("evaluation: texts of a batch of more than 131,072 tokens follow each other, or micro_batch_tokens at once") {
  struct Long final : BatchSource {
    int64_t examples_per_epoch() const override { return 3; }
    int64_t batches_per_epoch(int64_t) const override { return 1; }
    Batch batch(int64_t, int64_t) const override {
      const Shape shape{3, int64_t{1} << 16};
      return {Ids(shape, 0), Ids(shape, 1), Ids(shape, 0), Ids({3}, 0)};
    }
  };
  struct CountedTask final : Task {
    mutable std::vector<int64_t> rows;
    TaskLoss loss(const Batch& batch, const Context&) const override {
      rows.push_back(batch.tokens.dim(0));
      return {Var(Array::scalar(1)), 1, 0};
    }
  };
  const CountedTask by_default, one_by_one;
  evaluate(by_default, Long());
  evaluate(one_by_one, Long(), 1 << 16);
  CHECK(by_default.rows == std::vector<int64_t>{1, 2});
  CHECK(one_by_one.rows == std::vector<int64_t>{1, 1, 1});
}

TEST_CASE("evaluation: another thread may set the number of threads meanwhile") {
  struct Setter final : Task {
    TaskLoss loss(const Batch&, const Context&) const override {
      std::thread([] { set_threads(1); }).join();
      return {Var(Array::scalar(1)), 1, 0};
    }
  };
  DrawnBatches batches;
  batches.rows = 3;
  batches.count = 8;
  const Threads threads_used(2);
  CHECK(evaluate(Setter(), batches).targets == 8);
}
