#include "core/strings/quantities.hpp"
#include "run/setup/run_memory.hpp"

#include <doctest/doctest.h>

#include "core/machine/pool.hpp"
#include "run/setup/run_model.hpp"
#include "run/yaml/config.hpp"
#include "tests/support/texts.hpp"

namespace capstan {
namespace {

DataExtent extent(int64_t examples, int64_t tokens) {
  DataExtent data;
  data.examples = examples;
  data.example_tokens = tokens;
  return data;
}

RunConfig config_with(const std::vector<std::string>& overrides) {
  std::vector<std::string> all = {"name=memory", "data.train=[missing]", "model.layers=[{mixer: aft-local}]",
                                  "train.steps=1"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return load_config<RunConfig>({}, all);
}

TEST_CASE("memory: what a model needs is known without making it") {
  for (const char* const setting :
       {"model.width=64", "model.positions=learned", "model.ngram_embedding.orders=[2,3]", "model.layers.0.repeat=3"}) {
    CAPTURE(setting);
    const RunConfig config = config_with({setting});
    DataExtent data;
    data.vocabulary = 300;
    const size_t before = pool::stats().bytes_in_use;
    const MemoryNeed need = memory_need(config, data);
    CHECK(pool::stats().bytes_in_use == before);
    const RunModel model(config, data.vocabulary, data.classes);
    const auto elements = static_cast<double>(model.params().flat_size());
    CHECK(need.parameters == 4 * elements);
    CHECK(need.optimizer >= 2 * 4 * static_cast<double>(model.params().count()));
    CHECK(need.optimizer <= 2 * 4 * elements);
    CHECK(need.activations > 0);
  }
}

TEST_CASE("memory: class weights for any number of classes are taken before the classes are known") {
  const RunConfig config = config_with({"data={type: labelled, train: [missing], max_length: 16}",
                                        "model={type: text-classifier, layers: [{mixer: aft-local}], class_weights: "
                                        "{type: listed, weights: [1, 2, 1]}}"});
  CHECK_FALSE(memory_problem(config, min_extent(config), {8'000'000'000, "this machine"}));
  CHECK(memory_problem(config, min_extent(config), {1'000, "this machine"}));
}

TEST_CASE("memory: a batch counts with its tokens, a micro-batch with its own") {
  const DataExtent data = extent(1000, 256);
  const auto tokens = [&](const std::vector<std::string>& settings) {
    return memory_need(config_with(settings), data).tokens;
  };
  CHECK(tokens({"train.batch_size=8", "train.lanes=1"}) == 7 * 256);
  CHECK(tokens({"train.batch_size=8", "train.micro_batch_tokens=512"}) == 256);
  CHECK(tokens({"train.batch_size=1000000000"}) == 999 * 256);
  CHECK(tokens({"train.batch_tokens=2560", "train.lanes=1"}) == 9 * 256);
}

TEST_CASE("memory: lanes that wait for others count, and the optimizer's state is shared out among ranks") {
  const DataExtent data = extent(1000, 64);
  const RunConfig config = config_with({"train.batch_size=16", "train.lanes=8"});
  const MemoryNeed alone = memory_need(config, data);
  const double block = memory_need(config_with({"train.batch_size=16", "train.lanes=1"}), data).gradients;
  struct {
    int64_t ranks;
    double blocks;
  } const cases[] = {{1, 5}, {2, 4}, {4, 3}, {8, 2}, {3, 3}};
  for (const auto& [ranks, blocks] : cases) {
    CAPTURE(ranks);
    const MemoryNeed need = memory_need(config, data, ranks);
    CHECK(need.parameters == alone.parameters);
    CHECK(need.gradients == blocks * block);
    CHECK(need.optimizer == doctest::Approx(alone.optimizer / static_cast<double>(ranks)));
  }
}

TEST_CASE("memory: the problem names what takes most, the bytes and the limit") {
  const DataExtent data;
  const MemoryLimit limit{8'000'000'000, "this machine"};
  CHECK_FALSE(memory_problem(config_with({}), data, limit));
  const auto rank =
      memory_problem(config_with({"model.max_length=16777216", "model.layers.0.mixer.rank=65536"}), data, limit);
  REQUIRE(rank);
  CHECK(rank->key == "model");
  check_contains(rank->message, {"this machine has 8.0 GB", "capstan inspect", " TB of memory"});
  const auto batch =
      memory_problem(config_with({"train.batch_size=1000000", "train.lanes=1"}), extent(1 << 20, 1024), limit);
  REQUIRE(batch);
  CHECK(batch->key == "train.batch_size");
  // Beyond what can be counted.
  const auto all =
      memory_problem(config_with({"model.layers.0.mixer.type=aft-full", "model.layers.0.mixer.position_bias=dense",
                                  "model.max_length=16777216", "model.layers.0.repeat=1000", "model.width=65536"}),
                     data, limit);
  REQUIRE(all);
  CHECK(contains(all->message, "--force"));
}

TEST_CASE("memory: ranks share out what the optimizer keeps; a machine's limit is for all its ranks") {
  const RunConfig config = config_with({"model.width=1024"});
  const DataExtent data;
  const MemoryNeed one = memory_need(config, data), four = memory_need(config, data, 4);
  CHECK(four.optimizer == one.optimizer / 4);
  CHECK(four.parameters == one.parameters);
  CHECK(four.gradients == one.gradients);
  const MemoryLimit limit{static_cast<uint64_t>(four.total() + 1), "ulimit -v"};
  CHECK(memory_problem(config, data, limit));
  CHECK_FALSE(memory_problem(config, data, limit, 4));
  const auto shared = memory_problem(config, data, {4 * limit.bytes / 5, "this machine"}, 4, 4);
  REQUIRE(shared);
  CHECK(contains(shared->message, "each of 4 ranks' share of this machine has "));
}

TEST_CASE("memory: what the process has already counts, and sizes that are chosen leave memory to spare") {
  const RunConfig config = config_with({"train.batch_size=8", "train.lanes=1"});
  DataExtent data = extent(100, 256);
  const auto need = static_cast<uint64_t>(memory_need(config, data).total() + 1);
  CHECK_FALSE(memory_problem(config, data, {need, "this machine"}));
  const auto ample = memory_problem(config, data, {need, "this machine"}, 1, 1, MemoryBound::ample);
  REQUIRE(ample);
  CHECK(contains(ample->message, "needs about "));
  data.taken = 1e8;
  const auto taken = memory_problem(config, data, {need, "this machine"});
  REQUIRE(taken);
  CHECK(contains(taken->message, "100 MB for the program and the data"));
  CHECK_FALSE(memory_problem(config, data, {need + 100'000'000, "this machine"}));
}

TEST_CASE("memory: bytes in words") {
  CHECK(bytes_text(12) == "12 bytes");
  CHECK(bytes_text(1500) == "1.5 kB");
  CHECK(bytes_text(123456789) == "123 MB");
  CHECK(bytes_text(3.2e15) == "3.2 PB");
}

}  // namespace
}  // namespace capstan
