// Training by several ranks gives the bits of one: files of checkpoints, losses, evaluations.
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "core/base/error.hpp"
#include "tests/models/systems.hpp"
#include "tests/support/threads.hpp"
#include "train/checkpointed_runs.hpp"
#include "train/rank_threads.hpp"
#include "train/steps/lanes.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

/// What a run has written: the files of its last checkpoint and the lines of its metrics without times.
struct Left {
  std::string model, optimizer, metrics;
};

Left left_in(const std::filesystem::path& folder) {
  const auto last = in_run(folder / "checkpoints/last");
  return {read_text(last / "model.safetensors"), read_text(last / "optimizer.safetensors"), comparable_metrics(folder)};
}

void check_same_tensors(const Left& a, const Left& b) {
  CHECK((a.model == b.model));
  CHECK((a.optimizer == b.optimizer));
}

/// Trains in every rank a model of its own, on `threads` threads each.
template <class Make>
void train_in(const std::filesystem::path& folder, int ranks, int threads, const Make& make, const BatchSource& data,
              const BatchSource& held_out, const TrainConfig& config) {
  const Threads threads_used(threads);
  const auto body = [&](Communicator& communicator) {
    const auto model = make();
    RunInputs inputs{*model.model, *model.store, data, &held_out, folder, {{"model", "m"}}, 1};
    inputs.ranks = &communicator;
    train(inputs, config);
  };
  run_ranks(ranks, body);
}

struct Size {
  int ranks, threads;
};
const std::vector<Size> all_sizes{{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {3, 1}, {5, 1}, {8, 1}};

template <class Make>
void check_same_files(const std::vector<Size>& sizes, const Make& make, const BatchSource& data,
                      const BatchSource& held_out, const TrainConfig& config) {
  std::optional<Left> first;
  for (const Size& size : sizes) {
    INFO(size.ranks, " ranks of ", size.threads, " threads");
    const TemporaryFolder folder;
    train_in(folder / "run", size.ranks, size.threads, make, data, held_out, config);
    const Left left = left_in(folder / "run");
    if (!first) {
      first = left;
      CHECK(left.model.size() > 500);
      continue;
    }
    check_same_tensors(left, *first);
    CHECK(left.metrics == first->metrics);
  }
}

TrainConfig short_config() {
  TrainConfig config = quiet_config(4);
  config.lanes = 8;
  config.save_every = 3;
  config.valid_every = 2;
  return config;
}

LanguageModelConfig first_config() { return model_config<LanguageModelConfig>(systems().front()); }

DrawnBatches drawn(int64_t rows) { return {rows, longest, vocabulary}; }

}  // namespace

TEST_CASE(
    "ranks and threads do not change the bits: every system as a language model, whole rows and packed documents") {
  for (const System& system : systems())
    for (const int64_t document : {int64_t{0}, int64_t{3}}) {
      INFO(system.name, ", documents of ", document, " tokens (0: whole rows)");
      DrawnBatches data = drawn(9), held_out = drawn(5);
      data.document = held_out.document = document;
      const auto make = [&] {
        auto config = model_config<LanguageModelConfig>(system);
        config.dropout = 0.2;
        return finalized(language_model(config));
      };
      check_same_files(all_sizes, make, data, held_out, short_config());
    }
}

TEST_CASE("ranks and threads do not change the bits: recompute, micro-batches, accumulation, every optimizer") {
  const DrawnBatches data = drawn(11), held_out = drawn(5);
  const auto make = [] {
    auto config = first_config();
    config.dropout = 0.2;
    config.recompute = true;
    return finalized(language_model(config));
  };
  TrainConfig config = short_config();
  config.micro_batch_tokens = longest;
  config.accumulate = 3;
  config.grad_clip = 0.1;
  for (const OptimizerConfig& optimizer : {OptimizerConfig{AdamWConfig{}}, OptimizerConfig{SgdConfig{}},
                                           OptimizerConfig{LionConfig{}}, OptimizerConfig{MuonConfig{}}}) {
    config.optimizer = optimizer;
    check_same_files(all_sizes, make, data, held_out, config);
  }
}

TEST_CASE("ranks and threads do not change the bits: classifiers with tables of n-grams, texts of unequal length") {
  const LabelledBatches data(drawn(9)), held_out(drawn(4));
  for (const char* const name : {"aft-simple", "fastformer"}) {
    INFO(name);
    const auto make = [&] { return classifier_with_ngrams(name); };
    check_same_files(all_sizes, make, data, held_out, short_config());
  }
}

TEST_CASE("ranks and threads do not change the bits: n-grams in the embedding, emptied at every epoch; bf16") {
  const DrawnBatches data = drawn(9), held_out = drawn(4);
  const auto make = [] {
    auto config = first_config();
    config.ngram_embedding.orders = {2, 3};
    config.ngram_embedding.buckets = 40;
    config.ngram_embedding.dropout = 0.1;
    config.ngram_embedding.fresh_each_epoch = true;
    return finalized(language_model(config));
  };
  TrainConfig config = short_config();
  config.steps = 9;  // an epoch has 7
  setenv("CAPSTAN_BF16", "emulate", 1);
  for (const Precision precision : {Precision::float32, Precision::bf16}) {
    config.precision = precision;
    check_same_files(all_sizes, make, data, held_out, config);
  }
  unsetenv("CAPSTAN_BF16");
}

TEST_CASE("a run goes on with other numbers of ranks and threads") {
  const DrawnBatches data = drawn(9), held_out = drawn(5);
  const auto make = [] { return finalized(language_model(first_config())); };
  for (const OptimizerConfig& optimizer : {OptimizerConfig{AdamWConfig{}}, OptimizerConfig{MuonConfig{}}}) {
    const TemporaryFolder folder;
    TrainConfig config = short_config();
    config.optimizer = optimizer;
    config.steps = 12;
    config.schedule.shape = ScheduleShape::constant;
    train_in(folder / "whole", 1, 1, make, data, held_out, config);
    int64_t steps = 0;
    for (const Size& size : {Size{3, 1}, Size{1, 2}, Size{8, 1}, Size{2, 2}}) {
      config.steps = steps += 3;
      train_in(folder / "parts", size.ranks, size.threads, make, data, held_out, config);
    }
    const Left whole = left_in(folder / "whole"), parts = left_in(folder / "parts");
    check_same_tensors(parts, whole);
  }
}

TEST_CASE("more ranks than lanes are refused; batches of fewer lanes than ranks are not") {
  const DrawnBatches data = drawn(2), held_out = drawn(3);
  const auto make = [] { return finalized(language_model(first_config())); };
  TrainConfig config = short_config();
  config.steps = 2;
  config.lanes = 1;
  const TemporaryFolder folder;
  const std::string message = message_of([&] { train_in(folder / "run", 2, 1, make, data, held_out, config); });
  INFO(message);
  check_contains(message, {"train.lanes: 1", "Set train.lanes to 2"});
  config.lanes = 0;  // one lane for so few tokens
  check_same_files({{1, 1}, {3, 1}}, make, data, held_out, config);
  config.lanes = 8;
  check_same_files({{1, 1}, {5, 1}}, make, data, held_out, config);
}

TEST_CASE("a rank whose step takes long is waited for as its earlier steps suggest, whatever the time-out") {
  const TemporaryFolder folder;
  const auto body = [&](Communicator& ranks) {
    Setup setup(folder / "run");
    setup.inputs.ranks = &ranks;
    setup.task.before_loss = [&](const Context& context) {
      if (!context.training) return;
      const bool slow = context.step == 1 && ranks.rank() == 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(slow ? 4500 : 600));
    };
    TrainConfig config = quiet_config(2);
    config.lanes = 2;
    train(setup.inputs, config);
  };
  CHECK(message_of([&] { run_ranks(2, body, 3); }) == "no error");
}

TEST_CASE(
    "a long step of one rank is undone by all of them after a signal, and the run has an unbroken one's weights") {
  TrainConfig config = quiet_config(6);
  config.lanes = 2;
  config.accumulate = 2;
  const TemporaryFolder folder;
  const auto train_two = [&](const std::string& name, int slow_rank) {
    std::atomic<bool> sent{false};
    run_ranks(2, [&](Communicator& ranks) {
      Setup setup(folder / name);
      setup.inputs.ranks = &ranks;
      setup.task.before_loss = [&](const Context& context) {
        if (!context.training || context.step != 3 || ranks.rank() != slow_rank) return;
        if (!sent.exchange(true)) send_signal(SIGTERM);
        compute_for(10);
      };
      const TrainResult result = train(setup.inputs, config);
      if (result.state.step != (slow_rank < 0 ? 6 : 3)) throw Error(fmt::format("ends at {}", result.state.step));
    });
  };
  train_two("whole", -1);
  for (const int slow_rank : {0, 1}) {
    const std::string name = fmt::format("broken-{}", slow_rank);
    const Stopwatch watch;
    train_two(name, slow_rank);
    CHECK(watch.seconds() < 5);
    train_two(name, -1);
    check_same_tensors(left_in(folder / name), left_in(folder / "whole"));
  }
  std::signal(SIGTERM, SIG_DFL);  // sessions of threads do not end in the order that their handlers need
}

TEST_CASE("a rank sends at most 2 P (R - 1) / R numbers in a step, and what is left of the tree") {
  const DrawnBatches data = drawn(16), held_out = drawn(4);
  const auto make = [] {
    auto config = first_config();
    config.width = 64;
    return finalized(language_model(config));
  };
  const double numbers = static_cast<double>(make().store->dense_size());
  TrainConfig config = short_config();
  config.save_every = 0;
  config.valid_every = 0;
  config.schedule.shape = ScheduleShape::constant;
  for (const int count : {2, 4, 8, 3, 5}) {
    INFO(count, " ranks");
    std::vector<int64_t> sent[2] = {std::vector<int64_t>(8), std::vector<int64_t>(8)};
    for (const int64_t longer : {0, 1}) {  // the difference is what the additional steps cost
      config.steps = 2 + 4 * longer;
      const TemporaryFolder folder;
      run_ranks(count, [&](Communicator& ranks) {
        const auto model = make();
        RunInputs inputs{*model.model, *model.store, data, nullptr, folder / "run", {{"model", "m"}}, 1};
        inputs.ranks = &ranks;
        train(inputs, config);
        sent[longer][static_cast<size_t>(ranks.rank())] = ranks.bytes_sent();
      });
    }
    const LaneTree tree(8);
    for (int rank = 0; rank < count; ++rank) {
      const auto at = static_cast<size_t>(rank);
      const double of_step = static_cast<double>(sent[1][at] - sent[0][at]) / 4 / sizeof(real);
      const auto nodes = static_cast<double>(tree.nodes_of(tree.lanes_of(rank, count)).size());
      const double share = numbers * (count - 1) / count;
      // Slices differ by a piece (64 numbers); reports, squares of pieces and their sizes are a few hundred more.
      const double more = 64.0 * count + 4000;
      INFO("rank ", rank, " sends ", of_step, " numbers; P (R - 1) / R is ", share);
      CHECK(of_step <= (1 + nodes) * share + more);
      CHECK(of_step >= 0.9 * (1 + nodes) * share - more);
    }
  }
}
