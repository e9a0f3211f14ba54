// Lanes: the cut of a batch, the order in which gradients are added, and the same bits on any number of threads.
#include "train/steps/lanes.hpp"

#include <doctest/doctest.h>

#include "data/batches/batcher.hpp"
#include "tests/models/systems.hpp"
#include "tests/support/threads.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/support.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

const std::vector<int> thread_counts{1, 2, 3, 5};

std::vector<real> taken(ParamStore& store) {
  std::vector<real> grads(store.grads(), store.grads() + store.dense_size());
  for (RowGrads& table : store.grad_block().tables()) {
    grads.insert(grads.end(), table.rows().begin(), table.rows().end());
    grads.insert(grads.end(), table.values().data(), table.values().data() + table.values().size());
  }
  store.clear_grads();
  return grads;
}

}  // namespace

TEST_CASE("how many lanes a batch has depends on its shape and on the setting alone") {
  struct Case {
    int64_t rows, columns, setting, lanes;
  };
  const Case cases[] = {
      {8, 1024, 0, 8},   {16, 1024, 0, 8}, {8, 512, 0, 4},   {1, 16384, 0, 1}, {12, 64, 0, 1},
      {64, 64, 0, 4},    {12, 1024, 0, 6}, {13, 1024, 0, 8}, {14, 1024, 0, 7}, {10, 1024, 0, 5},
      {2, 100000, 0, 2}, {64, 1, 0, 1},    {8, 512, 3, 3},   {8, 512, 100, 8}, {12, 64, 12, 12},
      {1, 64, 4, 1},     {0, 5, 0, 1},     {3, 0, 0, 1},     {0, 5, 4, 1},
  };
  for (const Case& c : cases) {
    INFO(c.rows, " x ", c.columns, ", setting ", c.setting);
    CHECK(lane_count(c.rows, c.columns, c.setting) == c.lanes);
  }
}

TEST_CASE("lanes are added along a binary tree over their indices") {
  for (int64_t lanes = 1; lanes <= 13; ++lanes) {
    INFO(lanes, " lanes");
    NewRun setup;
    setup.data.rows = 17;
    const Batch batch = setup.data.batch(0, 0);
    Lanes alone(setup.task, setup.params);
    PassOptions one;
    one.lanes = 1;
    struct Node {
      std::vector<real> grads;
      double loss;
    };
    std::vector<Node> level;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      StepSums sums;
      alone.add_gradients(rows_of(batch, 17 * lane / lanes, 17 * (lane + 1) / lanes), one, sums);
      level.push_back({taken(setup.params), sums.loss});
    }
    while (level.size() > 1) {
      std::vector<Node> next;
      for (size_t i = 0; i < level.size(); i += 2) {
        next.push_back(level[i]);
        if (i + 1 == level.size()) break;
        for (size_t k = 0; k < level[i].grads.size(); ++k) next.back().grads[k] += level[i + 1].grads[k];
        next.back().loss += level[i + 1].loss;
      }
      level = std::move(next);
    }
    for (const int count : thread_counts) {
      const Threads threads_used(count);
      Lanes together(setup.task, setup.params);
      PassOptions options;
      options.lanes = lanes;
      for (int repeat = 0; repeat < 3; ++repeat) {  // blocks are used again
        StepSums sums;
        together.add_gradients(batch, options, sums);
        CHECK(taken(setup.params) == level.front().grads);
        CHECK(sums.loss == level.front().loss);
      }
    }
  }
}

TEST_CASE("a batch of one lane: with gradients that are 0 before, the same bits with and without a block of its own") {
  NewRun setup;
  const Batch batch = setup.data.batch(0, 0);
  Lanes lanes(setup.task, setup.params);
  PassOptions options;
  options.micro_batch_tokens = batch.tokens.dim(1);
  StepSums sums;
  lanes.add_gradients(batch, options, sums);
  const std::vector<real> expected = taken(setup.params);
  options.fresh = true;
  lanes.add_gradients(batch, options, sums);
  CHECK(taken(setup.params) == expected);
}

TEST_CASE_FIXTURE(OneRun, "the first lane that fails is the one reported, and the next batch is not affected") {
  setup.data.rows = 12;
  const Batch batch = setup.data.batch(0, 0);
  PassOptions options;
  options.lanes = 6;
  Lanes lanes(setup.task, setup.params);
  StepSums expected;
  lanes.add_gradients(batch, options, expected);
  const std::vector<real> grads = taken(setup.params);
  for (const int count : thread_counts) {
    const Threads threads_used(count);
    setup.task.before_loss = [](const Context& context) {
      const int32_t example = context.examples[0];
      if (example == 4 || example == 8) throw std::domain_error("example " + std::to_string(example));
    };
    StepSums sums;
    CHECK_THROWS_WITH_AS(lanes.add_gradients(batch, options, sums), "example 4", std::domain_error);
    setup.params.clear_grads();
    setup.task.before_loss = nullptr;
    StepSums after;
    lanes.add_gradients(batch, options, after);
    CHECK(taken(setup.params) == grads);
  }
}

namespace {

struct Outcome {
  std::vector<real> weights;
  double loss, held_out;
};

/// Three steps, of two batches each, and an evaluation.
template <class Model>
Outcome trained(const Built<Model>& model, BatchSource& data, int threads_used, const TrainConfig& more) {
  const Threads count(threads_used);
  const TemporaryFolder folder;
  TrainConfig config = more;
  config.steps = 3;
  config.accumulate = 2;
  config.lanes = 5;
  const TrainResult result =
      train({*model.model, *model.store, data, nullptr, folder / "run", {{"model", "m"}}, 1}, config);
  return {{model.store->values(), model.store->values() + model.store->flat_size()},
          result.state.window_loss,
          evaluate(*model.model, data).loss()};
}

template <class Make>
void check_same_bits(const Make& make, BatchSource& data, const TrainConfig& config) {
  const Outcome first = trained(make(), data, 1, config);
  for (const int count : {2, 3}) {
    INFO(count, " threads");
    const Outcome other = trained(make(), data, count, config);
    CHECK(other.weights == first.weights);
    CHECK(other.loss == first.loss);
    CHECK(other.held_out == first.held_out);
  }
}

}  // namespace

TEST_CASE("training gives the same bits on any number of threads: every system as a language model") {
  for (const System& system : systems()) {
    for (const bool recompute : {false, true}) {
      INFO(system.name, recompute ? ", recompute" : "");
      DrawnBatches data(9, longest, vocabulary);
      const auto make = [&] {
        auto config = model_config<LanguageModelConfig>(system);
        config.dropout = 0.2;
        config.recompute = recompute;
        return finalized(language_model(config));
      };
      TrainConfig config = quiet_config();
      config.micro_batch_tokens = recompute ? longest : 0;
      check_same_bits(make, data, config);
    }
  }
}

TEST_CASE("training gives the same bits on any number of threads: a classifier with tables of n-grams") {
  for (const char* const name : {"aft-simple", "fastformer"}) {
    INFO(name);
    LabelledBatches data(DrawnBatches(9, longest, vocabulary));
    const auto make = [&] { return classifier_with_ngrams(name); };
    check_same_bits(make, data, quiet_config());
  }
}

TEST_CASE(
    "a batch of one lane gives the same bits on any number of threads: every system, a long text and three documents") {
  constexpr int64_t length = 1100;
  for (System system : systems()) {
    set_option(system.layer.mixer, "window", "100");
    set_option(system.layer.mixer, "chunk", "200");
    system.layer.repeat = 1;
    for (const std::vector<int64_t>& documents : {std::vector<int64_t>{length}, std::vector<int64_t>{700, 133, 250}}) {
      INFO(system.name, ", ", documents.size(), " documents");
      auto config = model_config<LanguageModelConfig>(system);
      config.width = 72;
      config.max_length = length;
      config.dropout = 0.2;
      const auto model = finalized(language_model(config));
      Ids ids = Ids::zeros({1, length});
      int64_t begin = 0;
      for (size_t i = 0; i < documents.size(); begin += documents[i++])
        std::fill_n(ids.mutable_data() + begin, documents[i], static_cast<int32_t>(i + 1));
      const Batch batch = next_token_batch(Segments(ids), 5);
      std::vector<real> expected;
      double loss = 0;
      for (const int count : thread_counts) {
        INFO(count, " threads");
        const Threads threads_used(count);
        Lanes lanes(*model.model, *model.store);
        StepSums sums;
        lanes.add_gradients(batch, {}, sums);
        const std::vector<real> grads = taken(*model.store);
        if (count == 1) {
          expected = grads;
          loss = sums.loss;
        }
        CHECK(sums.loss == loss);
        size_t at = 0;
        for (const Param& param : model.store->params()) {
          const size_t size = static_cast<size_t>(param.var.value().size());
          if (param.options.by_rows) continue;
          INFO(param.name);
          CHECK(std::equal(grads.begin() + static_cast<std::ptrdiff_t>(at),
                           grads.begin() + static_cast<std::ptrdiff_t>(at + size),
                           expected.begin() + static_cast<std::ptrdiff_t>(at)));
          at += size;
        }
      }
    }
  }
}
