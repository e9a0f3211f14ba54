// train.precision: bf16, emulated where the CPU has no instructions for it.
#include <doctest/doctest.h>

#include <cstdlib>

#include "core/base/error.hpp"
#include "core/machine/pool.hpp"
#include "nn/params/bf16_weights.hpp"
#include "nn/params/param_store.hpp"
#include "tests/models/systems.hpp"
#include "tests/support/products.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/support.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

/// Allows emulation while it lives.
class Emulated {
 public:
  Emulated() { setenv("CAPSTAN_BF16", "emulate", 1); }
  ~Emulated() { unsetenv("CAPSTAN_BF16"); }
  Emulated(const Emulated&) = delete;
  Emulated& operator=(const Emulated&) = delete;

 private:
  KeptProducts kept_;
};

constexpr int64_t all_tokens = vocabulary;  // which the member of DrawnBatches hides

/// A language model whose labels are drawn: a rule to learn, with one label in eight another.
class NoisyBatches final : public DrawnBatches {
 public:
  explicit NoisyBatches(uint64_t of = 3) : DrawnBatches(6, longest, all_tokens) { seed = of; }
  Batch batch(int64_t epoch, int64_t index) const override {
    Batch batch = DrawnBatches::batch(epoch, index);
    for (int64_t i = 0; i < batch.labels.size(); ++i) {
      const RandomWords words =
          random_words({9, 9}, static_cast<uint32_t>(epoch), static_cast<uint32_t>(index), static_cast<uint32_t>(i), 0);
      if (batch.labels[i] != ignored_target && words[0] % 8 == 0)
        batch.labels.shared_data()[i] = static_cast<int32_t>(words[1] % static_cast<uint32_t>(vocabulary));
    }
    return batch;
  }
};

struct Run {
  Built<LanguageModel> model;
  NoisyBatches data, held_out{4};

  explicit Run(const LayerConfig& layer) {
    LanguageModelConfig config;
    config.width = width;
    config.max_length = longest;
    config.layers = {layer};
    config.positions = Positions::learned;
    model = language_model(config);
    model.store->finalize();
  }
  TrainResult train_in(const std::filesystem::path& folder, Precision precision, int64_t steps,
                       ScheduleShape shape = ScheduleShape::cosine) const {
    TrainConfig config = quiet_config(steps);
    config.lr = 0.01;
    config.schedule.shape = shape;
    config.log_every = 20;
    config.valid_every = 0;
    config.precision = precision;
    return train({*model.model, *model.store, data, &held_out, folder, {{"model", "small"}}, 1}, config);
  }
  std::vector<real> weights() const {
    return {model.store->values(), model.store->values() + model.store->flat_size()};
  }
};

/// Training losses of metrics.jsonl.
std::vector<double> losses_in(const std::filesystem::path& folder) {
  std::vector<double> losses;
  for (const nlohmann::json& entry : metrics_in(folder))
    if (entry.at("event") == "train") losses.push_back(entry.at("loss").get<double>());
  return losses;
}

double mean_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number;
  return sum / static_cast<double>(numbers.size());
}

}  // namespace

TEST_CASE("200 steps in bf16 follow the loss curve of float32, every system; evaluation sees the float weights") {
  const Emulated emulated;
  for (const System& system : systems()) {
    INFO(system.name);
    const TemporaryFolder folder;
    std::vector<std::vector<double>> curves;
    for (const Precision precision : {Precision::float32, Precision::bf16}) {
      const Run run(system.layer);
      const auto place = folder / enum_name(precision);
      const TrainResult result = run.train_in(place, precision, 200);
      curves.push_back(losses_in(place));
      for (const Param& param : run.model.store->params()) CHECK(param.var.bf16().empty());
      CHECK(evaluate(*run.model.model, run.held_out).loss() == result.state.best.at("loss"));
    }
    REQUIRE(curves[0].size() == 11);  // the first step, then every twentieth
    REQUIRE(curves[1].size() == 11);
    CHECK(curves[0].back() < 0.6 * curves[0].front());
    CHECK(curves[1] != curves[0]);
    CHECK(mean_of(curves[1]) == doctest::Approx(mean_of(curves[0])).epsilon(0.01));
    // Twenty steps of a batch of six scatter more where the curve is steep.
    for (size_t i = 0; i < curves[0].size(); ++i) CHECK(curves[1][i] == doctest::Approx(curves[0][i]).epsilon(0.1));
  }
}

TEST_CASE("a run in bf16 goes on to the bits of an unbroken one, and its checkpoint says who did the products") {
  const Emulated emulated;
  const LayerConfig layer = systems().front().layer;
  const TemporaryFolder folder;
  const Run whole(layer), first(layer), second(layer);
  // This shape does not depend on the number of steps.
  const ScheduleShape shape = ScheduleShape::constant;
  whole.train_in(folder / "whole", Precision::bf16, 12, shape);
  first.train_in(folder / "parts", Precision::bf16, 5, shape);
  const TrainResult result = second.train_in(folder / "parts", Precision::bf16, 12, shape);
  CHECK(second.weights() == whole.weights());
  CHECK(result.state.machine.at("bf16 products") != "");
  const Run in_float(layer);
  CHECK(in_float.train_in(folder / "float", Precision::float32, 12, shape).state.machine.count("bf16 products") == 0);
  CHECK(in_float.weights() != whole.weights());
}

TEST_CASE("after the first step a step in bf16 takes no memory from the system") {
  const Emulated emulated;
  const Threads threads_used(1);  // emulation takes its memory inside parallel regions
  for (const System& system : systems()) {
    INFO(system.name);
    const Run run(system.layer);
    const Batch batch = run.data.batch(0, 0);
    const auto step = [&] {
      const Bf16Weights copies(*run.model.store);
      descend(*run.model.model, *run.model.store, batch, 0.01);
    };
    step();
    const uint64_t misses = pool::stats().misses;
    for (int i = 0; i < 3; ++i) step();
    CHECK(pool::stats().misses == misses);
  }
}

TEST_CASE("oneDNN and floats train alike" * doctest::skip(!onednn_multiplies_bf16())) {
  const Emulated emulated;
  const TemporaryFolder folder;
  std::vector<std::vector<double>> curves;
  for (const Bf16Backend backend : {Bf16Backend::floats, Bf16Backend::onednn}) {
    set_bf16_backend(backend);
    const Run run(systems().front().layer);
    const auto place = folder / std::to_string(curves.size());
    run.train_in(place, Precision::bf16, 40);
    curves.push_back(losses_in(place));
  }
  REQUIRE(curves[0].size() == curves[1].size());
  for (size_t i = 0; i < curves[0].size(); ++i) CHECK(curves[1][i] == doctest::Approx(curves[0][i]).epsilon(1e-3));
}

TEST_CASE("without bf16 instructions bf16 is refused by name, unless emulation is asked for") {
  TrainConfig config = quiet_config(1);
  CHECK(precision_obstacle(config) == "");
  config.precision = Precision::bf16;
  unsetenv("CAPSTAN_BF16");
  if (bf16_obstacle().empty()) {
    CHECK_NOTHROW(check_config(config));
  } else {
    CHECK_THROWS_AS(check_config(config), ConfigError);
    const std::string message = message_of([&] { check_config(config); });
    check_contains(message, {"train.precision: bf16 is not available: " + bf16_obstacle(),
                             onednn_version().empty() ? "install libdnnl-dev" : "this CPU has no instructions",
                             "use float32", "CAPSTAN_BF16=emulate"});
  }
  const Emulated emulated;
  CHECK_NOTHROW(check_config(config));
}
