#include <doctest/doctest.h>

#include "train/loop/run_length.hpp"
#include "train/optimizers/optimizer.hpp"
#include "train/support.hpp"

using namespace capstan;
using namespace capstan::testing;

TEST_CASE("a table that starts again with each epoch is empty in its first step, and at no other time") {
  NewRun setup(11, /*fresh_each_epoch=*/true);
  TrainConfig config = quiet_config(21);  // three epochs of 7
  config.valid_every = 7;
  const Param& weight = setup.params.find("weight");
  std::vector<uint64_t> empty_at;
  real bias_at_7 = 0;
  setup.task.before_loss = [&](const Context& context) {
    const auto values = weight.var.value().to_vector();
    if (std::all_of(values.begin(), values.end(), [](real value) { return value == 0; }))
      // The evaluation of a finished epoch sees the table that the epoch has filled.
      empty_at.push_back(context.training ? context.step : 1000);
    if (context.training && context.step == 7) bias_at_7 = setup.params.find("bias").var.value()[0];
  };
  train(setup.inputs, config);
  CHECK(empty_at == std::vector<uint64_t>{0, 7, 14});
  CHECK(bias_at_7 != 0);  // the others go on
  const auto values = weight.var.value().to_vector();
  CHECK(std::any_of(values.begin(), values.end(), [](real value) { return value != 0; }));
}

TEST_CASE("emptying a table: values and moments, of this parameter alone") {
  ParamStore params;
  params.add("before", Array(Shape{3, 5}, real{2}), {});
  params.add("table", Array(Shape{7, 5}, real{2}), {true, /*by_rows=*/true, /*fresh_each_epoch=*/true});
  params.add("after", Array(Shape{4, 5}, real{2}), {true, /*by_rows=*/true});
  CHECK(has_fresh_tables(params));
  params.finalize();
  Optimizer optimizer(AdamWConfig{}, params);
  for (OptimizerState& state : optimizer.states()) std::fill_n(state.data(), state.size(), real{3});

  const auto expect = [&](const real* block, real elsewhere) {
    for (const Param& param : params.params())
      for (int64_t i = 0; i < param.var.size(); ++i)
        REQUIRE(block[param.offset + i] == (param.name == "table" ? real{0} : elsewhere));
  };
  empty_fresh_tables(params, optimizer);
  expect(params.values(), 2);
  for (OptimizerState& state : optimizer.states()) expect(state.data(), 3);

  ParamStore plain;
  plain.add("table", Array(Shape{7, 5}, real{2}), {true, true});
  CHECK_FALSE(has_fresh_tables(plain));
}

TEST_CASE("a run that ends early in an epoch is told so where it has a table that starts again") {
  const DrawnBatches batches;  // 7 per epoch
  TrainConfig config = quiet_config();
  const auto warning = [&](int64_t steps, int64_t epochs, int64_t accumulate = 1) {
    config.steps = steps;
    config.epochs = epochs;
    config.accumulate = accumulate;
    return fresh_tables_warning(batches, config).value_or("");
  };
  CHECK(warning(0, 3) == "");
  CHECK(warning(14, 0) == "");
  CHECK(warning(5, 0) == "");   // within the first epoch the table is as any other
  CHECK(warning(12, 0) == "");  // more than half of the second
  CHECK(warning(0, 0) == "");   // the end is not known
  CHECK(contains(warning(18, 0), "the last epoch has only 4 of its 7 steps"));
  CHECK(contains(warning(17, 0), "the last epoch has only 3 of its 7 steps"));
  CHECK(contains(warning(17, 9), "with train.epochs: 2 and train.steps: 0, or with train.steps: 14"));
  CHECK(contains(warning(9, 0, 2), "the last epoch has only 1 of its 4 steps"));

  const TemporaryFolder folder;
  Setup setup(folder / "run", 11, true), plain(folder / "plain");
  const TrainConfig short_run = quiet_config(8);
  train(setup.inputs, short_run);
  CHECK(
      contains(read_text(folder / "run" / "train.log"), "fresh_each_epoch: the last epoch has only 1 of its 7 steps"));
  train(plain.inputs, short_run);
  CHECK_FALSE(contains(read_text(folder / "plain" / "train.log"), "fresh_each_epoch"));
}
