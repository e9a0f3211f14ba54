// What train.minutes leaves open, planned with a pilot whose machine is known.
#include "run/training/plan.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

#include "core/base/error.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/run_model.hpp"
#include "run/yaml/config.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/texts.hpp"

namespace capstan {
namespace {

/// A text of so many bytes, of which all are for training.
class Text : public TemporaryFolder {
 public:
  explicit Text(int64_t bytes) { write("text.txt", std::string(static_cast<size_t>(bytes), 'x')); }

  RunConfig config(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {
        "name=plan", "data={valid_fraction: 0, sequence_length: 128, train: [" + path("text.txt") + "]}",
        "model={width: 0, dropout: null, max_length: 128, layers: [{mixer: aft-simple, repeat: 4}]}",
        "train={minutes: 60, batch_size: 8}"};
    all.insert(all.end(), more.begin(), more.end());
    return load_config<RunConfig>({}, all);
  }
};

double flops_of(const RunConfig& config) {
  return RunModel(config, 256, 1, ParamMemory::none).summary(128).training_flops();
}

/// A machine that does 3e10 operations a second.
PilotTimes at_a_known_rate(const RunConfig& config) { return {flops_of(config) * 8 * 128 / 3e10, 0}; }

const Fits always = [](const RunConfig&) { return true; };

RunPlan plan_for(const RunConfig& config, double seconds, const Pilot& pilot = at_a_known_rate,
                 const Fits& fits = always) {
  const std::unique_ptr<DataSource> data = open_data(config);
  return plan(config, *data, seconds, pilot, fits);
}

/// A machine on which a step takes so many seconds, whatever the model.
Pilot step_of(double seconds) {
  return [seconds](const RunConfig&) { return PilotTimes{seconds, 0}; };
}

const LanguageModelConfig& language_model(const RunConfig& config) {
  return std::get<LanguageModelConfig>(config.model);
}

int64_t width_of(const RunConfig& config) { return language_model(config).width; }

TEST_CASE("plan: the steps fill the time, and three tokens are read for each parameter") {
  const Text text(3000000);
  int64_t before = 0;
  for (const double seconds : {20.0, 60.0, 180.0}) {
    CAPTURE(seconds);
    const RunPlan made = plan_for(text.config(), seconds);
    const double step = at_a_known_rate(made.config).step, steps = static_cast<double>(made.config.train.steps);
    CHECK(steps * step <= seconds);
    CHECK((steps + 2) * step > seconds);
    const double ratio = steps * 8 * 128 / (flops_of(made.config) / 6);
    if (width_of(made.config) > 64) {
      CHECK(ratio > 2);
      CHECK(ratio < 4.7);
    }
    CHECK(width_of(made.config) % 16 == 0);
    CHECK(width_of(made.config) > before);
    before = width_of(made.config);
    CHECK_FALSE(has_plan_to_make(made.config));
    REQUIRE(made.report.size() == 1);
    CHECK(made.report[0].find(fmt::format("width {}, ", before)) != std::string::npos);
  }
}

TEST_CASE("plan: evaluations take their part of the time") {
  const Text text(3000000);
  const RunConfig config = text.config({"model.width=64", "train.valid_every=100"});
  const auto pilot = [](const RunConfig&) { return PilotTimes{0.5, 50}; };
  // 50 seconds at the end; before it, 100 steps and an evaluation take 100 seconds.
  CHECK(plan_for(config, 1050.2, pilot).config.train.steps == 1000);
  CHECK(plan_for(text.config({"model.width=64", "train.valid_every=0"}), 1050.2, pilot).config.train.steps == 2000);
  // No time at all is enough for a step.
  CHECK(plan_for(config, -5, pilot).config.train.steps == 1);
}

TEST_CASE("plan: little text is not read more than ten times, nor by a large model; dropout follows the passes") {
  const Text text(100000);
  const RunPlan made = plan_for(text.config(), 100000);
  const int64_t steps_per_epoch = 100000 / (8 * 128) + 1;
  CHECK(std::abs(made.config.train.steps - 10 * steps_per_epoch) <= 20);
  CHECK(flops_of(made.config) / 6 <= 4 * 100000);
  CHECK(language_model(made.config).dropout == doctest::Approx(0.17));
  REQUIRE(made.report.size() == 2);
  CHECK(made.report[1].find("shorter than the time") != std::string::npos);
  // A width that was given is kept, and so is the number of passes that the time allows.
  const RunConfig given = text.config({"model.width=64", "model.dropout=0.4"});
  const RunPlan more = plan_for(given, 1000.05, step_of(0.1));
  CHECK(more.config.train.steps == 10000);
  CHECK(language_model(more.config).dropout == 0.4);
  CHECK(language_model(plan_for(text.config({"model.width=64"}), 1, step_of(0.1)).config).dropout == 0.0);
}

TEST_CASE("plan: tables that are emptied at every epoch are filled again at the end") {
  const Text text(400000);
  const std::string ngrams = "model.ngram_embedding={orders: [2, 3], buckets: 0, width: 8, fresh_each_epoch: true}";
  const RunConfig config = text.config({ngrams, "model.width=64"});
  const std::unique_ptr<DataSource> data = open_data(config);
  const int64_t epoch = data->training().batches_per_epoch(0);
  const auto steps_for = [&](double epochs) {
    return plan_for(config, epochs * static_cast<double>(epoch) + 0.5, step_of(1)).config.train.steps;
  };
  CHECK(steps_for(0.4) == static_cast<int64_t>(0.4 * double(epoch)));
  CHECK(steps_for(1.4) == epoch);
  CHECK(steps_for(1.75) == static_cast<int64_t>(1.75 * double(epoch) + 0.5));
  CHECK(steps_for(2.3) == 2 * epoch);
  CHECK(steps_for(2.9) == 2 * epoch);
  CHECK(steps_for(3.1) == 3 * epoch);
  // Evaluations are at the ends of epochs, where the tables are full, and evenly between.
  const auto interval_for = [&](int64_t every) {
    RunConfig evaluated = config;
    evaluated.train.valid_every = every;
    return plan_for(evaluated, 100, step_of(1)).config.train.valid_every.value();
  };
  CHECK(interval_for(0) == 0);
  CHECK(interval_for(epoch / 3) == epoch / 3);
  CHECK(interval_for(epoch / 3 + 1) == epoch / 2);
  CHECK(interval_for(epoch - 1) == epoch);
  CHECK(interval_for(epoch * 2 + 5) == epoch * 2);
  CHECK(interval_for(int64_t{1} << 40) % epoch == 0);
  RunConfig two = config;
  two.train.epochs = 2;
  CHECK(plan_for(two, 1e9, step_of(1)).config.train.steps == 2 * epoch);
  // The nearest power of two to 0.8 for each token.
  const RunPlan made = plan_for(config, 100, step_of(1));
  CHECK(language_model(made.config).ngram_embedding.buckets == 262144);
}

TEST_CASE("plan: a width is chosen with which whole epochs fill the time") {
  const Text text(1000000);
  const RunConfig config =
      text.config({"model.ngram_embedding={orders: [2, 3], buckets: 16384, width: 8, fresh_each_epoch: true}"});
  // A machine whose steps take a time for operations and a larger one for all else, and that saves for two seconds.
  const Pilot slow = [](const RunConfig& c) { return PilotTimes{0.2 + flops_of(c) * 8 * 128 / 3e10, 1, 2}; };
  for (const double seconds : {100.0, 200.0, 240.0, 320.0, 400.0, 600.0, 900.0}) {
    CAPTURE(seconds);
    const RunPlan made = plan_for(config, seconds, slow);
    CAPTURE(made.report[0]);
    const PilotTimes times = slow(made.config);
    const double used = static_cast<double>(made.config.train.steps) * times.step + times.evaluation + times.save;
    CHECK(used > 0.9 * seconds);
    CHECK(used <= seconds);
  }
}

TEST_CASE("plan: sizes fit into the memory") {
  const Text text(3000000);
  const RunConfig config = text.config({"model.ngram_embedding={orders: [2, 3], buckets: 0, width: 8}"});
  const Fits narrow = [](const RunConfig& c) {
    const auto& model = language_model(c);
    return model.width <= 96 && model.ngram_embedding.buckets <= 40000;
  };
  const RunPlan made = plan_for(config, 6000, at_a_known_rate, narrow);
  CHECK(width_of(made.config) == 96);
  CHECK(language_model(made.config).ngram_embedding.buckets == 32768);
}

TEST_CASE("plan: only what fits and can be made is timed") {
  const Text text(3000000);
  std::vector<int64_t> timed;
  const Pilot noting = [&](const RunConfig& config) {
    timed.push_back(width_of(config));
    return at_a_known_rate(config);
  };
  const auto up_to = [](int64_t width) -> Fits {
    return [width](const RunConfig& config) { return width_of(config) <= width; };
  };
  CHECK(width_of(plan_for(text.config(), 6000, noting, up_to(112)).config) == 112);
  CHECK(timed == std::vector<int64_t>{112});
  // Heads that do not divide the usual first width: multiples of 80 and of 16 remain.
  timed.clear();
  const std::string five = "model.layers=[{mixer: {type: attention, heads: 5}}]";
  CHECK(width_of(plan_for(text.config({five}), 60, noting).config) % 80 == 0);
  REQUIRE_FALSE(timed.empty());
  CHECK(timed[0] == 160);
  timed.clear();
  // The caller's check of the memory says why a model does not fit.
  const RunPlan none = plan_for(text.config(), 6000, noting, up_to(0));
  CHECK(width_of(none.config) == 64);
  CHECK(none.config.train.steps == 1);
  CHECK(none.report.empty());
  CHECK(plan_for(text.config({"model.width=96"}), 6000, noting, up_to(0)).config.train.steps == 1);
  const std::string many = "model.layers=[{mixer: {type: attention, heads: 3001}}]";
  CHECK_THROWS_WITH_AS(plan_for(text.config({many}), 60, noting), doctest::Contains("model.width: no width from 64"),
                       ConfigError);
  CHECK(timed.empty());
}

TEST_CASE("plan: the decay of Muon's matrices follows the steps of a pass and the largest of the rates") {
  const auto decay = [](const RunConfig& config) { return std::get<MuonConfig>(config.train.optimizer).weight_decay; };
  const Text text(200 * 1024);
  const std::vector<std::string> open = {"train.optimizer={type: muon, weight_decay: null}", "train.lr=2e-3",
                                         "train.lr_scale=[{match: \"blocks.*\", factor: 5}]"};
  const RunPlan made = plan_for(text.config(open), 60);
  CHECK(decay(made.config) == 0.68);  // 1.36 / (0.01 * 200)
  CHECK(made.report[0].find("weight decay 0.68, ") != std::string::npos);
  CHECK(decay(with_plan_of(made.config, text.config(open))) == 0.68);
  CHECK(decay(plan_for(text.config({open[0], "train.lr=1e-1"}), 60).config) == 0.1);
  CHECK(decay(plan_for(text.config({open[0], "train.lr=1e-5"}), 60).config) == 1.5);
  CHECK(decay(plan_for(text.config({"train.optimizer=muon", "train.lr=1e-5"}), 60).config) == 0.1);
}

TEST_CASE("plan: a run that was begun keeps its plan, and none of other minutes is taken for it") {
  const Text text(40000);
  const std::string fresh = "model.ngram_embedding={orders: [2], buckets: 0, fresh_each_epoch: true}";
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"model.ngram_embedding={orders: [2], buckets: 0}"},
        {"train.schedule.warmup_steps=100000"},
        {fresh, "train.valid_every=500"}}) {
    const RunConfig open = text.config(more), begun = plan_for(open, 10).config;
    CAPTURE(more[0]);
    CHECK(has_plan_to_make(open));
    CHECK_FALSE(has_plan_to_make(begun));
    CHECK(diff_configs(with_plan_of(begun, open), begun).empty());
    CHECK(begun.train.schedule.warmup_steps <= std::max<int64_t>(1, begun.train.steps / 10));
  }
  const RunConfig open = text.config();
  RunConfig begun = plan_for(open, 10).config;
  // A run without a plan has none to give.
  CHECK_THROWS_WITH_AS(with_plan_of(begun, text.config({"train.minutes=20"})),
                       doctest::Contains("runs/plan was planned for 60 min: give --minutes 60"), ConfigError);
  begun.train.minutes = 0;
  CHECK(has_plan_to_make(with_plan_of(begun, open)));
}

TEST_CASE("plan: what is left open needs minutes, and a language model") {
  const Text text(40000);
  const auto refused = [&](const std::vector<std::string>& more) {
    return message_of<ConfigError>([&] { text.config(more); });
  };
  CHECK(refused({}) == "no error");
  CHECK(contains(refused({"train.minutes=0", "train.epochs=1"}), "is left open"));
  CHECK(contains(refused({"train.steps=5", "model.width=64"}), "model.dropout"));
  CHECK(contains(refused({"model.ngram_embedding={orders: [2], buckets: 0}", "train.steps=5"}),
                 "ngram_embedding.buckets"));
  CHECK(contains(refused({"train.optimizer={type: muon, weight_decay: null}", "train.steps=5", "model.width=64",
                          "model.dropout=0"}),
                 "train.optimizer.weight_decay: is left open"));
  // Without orders there is no table.
  CHECK(refused({"model.ngram_embedding.buckets=0", "train.steps=5", "model.width=64", "model.dropout=0"}) ==
        "no error");
  CHECK_THROWS_WITH_AS(
      load_config<RunConfig>({}, {"name=x", "data={type: labelled, train: [x]}", "model.type=text-classifier",
                                  "model.layers=[{mixer: aft-simple}]", "model.width=0", "train.minutes=5"}),
      doctest::Contains("only that of a language model can be left open"), ConfigError);
  // A model cannot be made before its plan.
  CHECK_THROWS_WITH_AS(RunModel(text.config(), 256, 1, ParamMemory::none),
                       doctest::Contains("model.width: is left open"), ConfigError);
}

}  // namespace
}  // namespace capstan
