// What train.minutes leaves open, planned with a pilot whose machine is known.
#include "run/training/plan.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

#include "core/base/error.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/run_model.hpp"
#include "run/yaml/config.hpp"
#include "run/yaml/config_diff.hpp"
#include "tests/support/temporary_folder.hpp"

namespace capstan {
namespace {

/// A text of so many bytes, of which all are for training.
class Text : public TemporaryFolder {
 public:
  explicit Text(int64_t bytes) { write("text.txt", std::string(static_cast<size_t>(bytes), 'x')); }

  RunConfig config(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"name=plan",
                                    "data.train=[" + path("text.txt") + "]",
                                    "data.valid_fraction=0",
                                    "data.sequence_length=128",
                                    "model.max_length=128",
                                    "model.layers=[{mixer: aft-simple, repeat: 4}]",
                                    "model.width=0",
                                    "model.dropout=null",
                                    "train.minutes=60",
                                    "train.batch_size=8"};
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

int64_t width_of(const RunConfig& config) { return std::get<LanguageModelConfig>(config.model).width; }

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
  CHECK(std::get<LanguageModelConfig>(made.config.model).dropout == doctest::Approx(0.17));
  REQUIRE(made.report.size() == 2);
  CHECK(made.report[1].find("shorter than the time") != std::string::npos);
  // A width that was given is kept, and so is the number of passes that the time allows.
  const RunConfig given = text.config({"model.width=64", "model.dropout=0.4"});
  const RunPlan more = plan_for(given, 1000.05, [](const RunConfig&) { return PilotTimes{0.1, 0}; });
  CHECK(more.config.train.steps == 10000);
  CHECK(std::get<LanguageModelConfig>(more.config.model).dropout == 0.4);
  CHECK(std::get<LanguageModelConfig>(plan_for(text.config({"model.width=64"}), 1,
                                               [](const RunConfig&) {
                                                 return PilotTimes{0.1, 0};
                                               })
                                          .config.model)
            .dropout == 0.0);
}

TEST_CASE("plan: tables that are emptied at every epoch are filled again at the end") {
  const Text text(400000);
  const std::string ngrams = "model.ngram_embedding={orders: [2, 3], buckets: 0, width: 8, fresh_each_epoch: true}";
  const RunConfig config = text.config({ngrams, "model.width=64"});
  const std::unique_ptr<DataSource> data = open_data(config);
  const int64_t epoch = data->training().batches_per_epoch(0);
  const auto steps_for = [&](double epochs) {
    return plan_for(config, epochs * static_cast<double>(epoch) + 0.5,
                    [](const RunConfig&) {
                      return PilotTimes{1, 0};
                    })
        .config.train.steps;
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
    return plan_for(evaluated, 100, [](const RunConfig&) { return PilotTimes{1, 0}; }).config.train.valid_every.value();
  };
  CHECK(interval_for(0) == 0);
  CHECK(interval_for(epoch / 3 + 1) == epoch / 3);
  CHECK(interval_for(epoch - 1) == epoch);
  CHECK(interval_for(epoch * 2 + 5) == epoch * 2);
  CHECK(interval_for(int64_t{1} << 40) % epoch == 0);
  // Left open, no more often than every 500 steps.
  const RunConfig open = text.config({ngrams, "model.width=64", "data.valid_fraction=0.1"});
  const int64_t shorter = open_data(open)->training().batches_per_epoch(0);
  REQUIRE(shorter > 250);
  CHECK(plan_for(open, 100, [](const RunConfig&) { return PilotTimes{1, 0}; }).config.train.valid_every == 2 * shorter);
  RunConfig two = config;
  two.train.epochs = 2;
  CHECK(plan_for(two, 1e9, [](const RunConfig&) { return PilotTimes{1, 0}; }).config.train.steps == 2 * epoch);
  // The nearest power of two to 0.8 for each token.
  const RunPlan made = plan_for(config, 100, [](const RunConfig&) { return PilotTimes{1, 0}; });
  CHECK(std::get<LanguageModelConfig>(made.config.model).ngram_embedding.buckets == 262144);
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
    const auto& model = std::get<LanguageModelConfig>(c.model);
    return model.width <= 96 && model.ngram_embedding.buckets <= 40000;
  };
  const RunPlan made = plan_for(config, 6000, at_a_known_rate, narrow);
  CHECK(width_of(made.config) == 96);
  CHECK(std::get<LanguageModelConfig>(made.config.model).ngram_embedding.buckets == 32768);
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

TEST_CASE("plan: a run that was begun keeps its plan; with other minutes its steps are in proportion") {
  const Text text(40000);
  const RunConfig open = text.config({"model.ngram_embedding={orders: [2], buckets: 0}"});
  const std::unique_ptr<DataSource> data = open_data(open);
  RunConfig begun = plan_for(open, 10).config;
  CHECK(has_plan_to_make(open));
  CHECK_FALSE(has_plan_to_make(begun));
  begun.train.steps = 120;
  const RunConfig same = with_plan_of(begun, open);
  CHECK(diff_configs(same, begun).empty());
  RunConfig shorter = open;
  shorter.train.minutes = 20;
  CHECK(with_plan_of(begun, shorter).train.steps == 40);
  CHECK(width_of(with_plan_of(begun, shorter)) == width_of(begun));
  // What is given is not taken from there, and a run without a plan has none to give.
  CHECK(with_plan_of(begun, text.config({"train.steps=7", "model.width=64", "model.dropout=0"})).train.steps == 7);
  begun.train.minutes = 0;
  CHECK(has_plan_to_make(with_plan_of(begun, open)));
  // So is the warm-up, a tenth of the steps.
  const RunConfig slow = text.config({"train.schedule.warmup_steps=100000"});
  const RunPlan made = plan_for(slow, 10);
  const int64_t tenth = std::max<int64_t>(1, made.config.train.steps / 10);
  CHECK(made.config.train.schedule.warmup_steps == tenth);
  CHECK(made.report[0].find(fmt::format("(warm-up over {} instead of 100000)", tenth)) != std::string::npos);
  CHECK(diff_configs(with_plan_of(made.config, slow), made.config).empty());
  RunConfig earlier = made.config;  // as a version planned that did not limit it
  earlier.train.schedule.warmup_steps = 100000;
  CHECK(diff_configs(with_plan_of(earlier, slow), earlier).empty());
  const TrainConfig hour = with_plan_of(made.config, text.config({"train.schedule.warmup_steps=3"})).train;
  CHECK(hour.schedule.warmup_steps == std::min<int64_t>(3, tenth));
  // Whether such a run is finished is asked without its data; continued with other minutes, it is rounded again.
  const std::string fresh = "model.ngram_embedding={orders: [2], buckets: 0, fresh_each_epoch: true}";
  const int64_t epoch = data->training().batches_per_epoch(0);
  RunConfig thrice = plan_for(text.config({fresh, "train.valid_every=500"}), 10).config;
  CHECK(thrice.train.valid_every.value() % epoch == 0);
  CHECK(with_plan_of(thrice, text.config({fresh})).train.valid_every == thrice.train.valid_every);
  thrice.train.steps = 3 * epoch;
  RunConfig other = with_plan_of(thrice, text.config({fresh, "train.minutes=50"}));
  CHECK(other.train.steps > 2 * epoch);
  other.train.valid_every = epoch + 1;
  const RunConfig rounded = with_whole_epochs(other, *data);
  CHECK(rounded.train.steps == 2 * epoch);
  CHECK(rounded.train.valid_every == epoch);
  CHECK(with_whole_epochs(rounded, *data).train.steps == 2 * epoch);
  CHECK(diff_configs(with_whole_epochs(begun, *data), begun).empty());
}

/// A planned run of 1,000 steps in 10 minutes that is at step 100.
struct Planned {
  explicit Planned(const Text& text, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{"model.width=64", "model.dropout=0", "train.minutes=10", "train.steps=1000",
                                 "train.corrected.step=100"};
    all.insert(all.end(), more.begin(), more.end());
    config = text.config(all);
    data = open_data(config);
  }
  /// After `seconds`, with steps of `each`, evaluations of 3 seconds at every 100 steps and checkpoints of 1 at
  /// every 50.
  PlanCheck check(double seconds, double each, int64_t most = int64_t{1} << 60) const {
    Pace pace({config.train.steps, 100, 50, 0, 1, 0});
    pace.evaluation_took(3);
    pace.save_took(1);
    return check_plan(config, *data, {100, seconds, each, most}, pace);
  }
  RunConfig config;
  std::unique_ptr<DataSource> data;
};

TEST_CASE(
    "plan: looked at again, it has the steps that fit into the rest of the time with evaluations and checkpoints") {
  const Text text(3000000);
  const Planned run(text);
  // 496 seconds are left without the end's 4; a step takes 0.15 and 0.05 of evaluations and checkpoints.
  const PlanCheck more = run.check(100, 0.15);
  CHECK(std::abs(more.steps - (100 + 2480)) <= 1);
  CHECK(more.report.find("looked at again at step 100: at 0.15 s a step, with evaluations and checkpoints, its 1000 "
                         "steps would take 4m44s of 10 min: ") != std::string::npos);
  CHECK(std::abs(run.check(100, 1.95).steps - (100 + 248)) <= 1);
  // What takes nearly the time is as it was: 900 further steps and 100 seconds, between 576 and 612.
  const auto taking = [](double seconds) { return (seconds - 104) / 900 - 0.05; };
  for (const double seconds : {577, 600, 611}) CHECK(run.check(100, taking(seconds)).steps == 1000);
  CHECK(run.check(100, taking(590)).report.find("10 min: it stays") != std::string::npos);
  CHECK(std::abs(run.check(100, taking(574)).steps - (100 + 900 * 496 / 470)) <= 1);
  CHECK(std::abs(run.check(100, taking(614)).steps - (100 + 900 * 496 / 510)) <= 1);
  // A few steps less would cost the last epoch of tables that start again: it is kept where it takes hardly longer.
  const Planned whole(text, {"model.ngram_embedding={orders: [2], buckets: 512, width: 8, fresh_each_epoch: true}"});
  RunConfig thrice = whole.config;
  thrice.train.steps = 3 * whole.data->training().batches_per_epoch(0);
  const auto share = [&](double of) {
    Pace pace({thrice.train.steps, 0, 0, 0, 0, 0});
    const double each = (600 * of - 100) / static_cast<double>(thrice.train.steps - 100);
    return check_plan(thrice, *whole.data, {100, 100, each, int64_t{1} << 60}, pace).steps;
  };
  CHECK(share(1.015) == thrice.train.steps);
  CHECK(share(1.04) == thrice.train.steps * 2 / 3);
  // Limits of the plan; a step there always is.
  CHECK(run.check(100, 0.15, 1500).steps == 1500);
  CHECK(run.check(100, 0.15, 1000).steps == 1000);
  CHECK(run.check(700, 0.15).steps == 101);
  const RunConfig open = text.config();
  const int64_t epoch = run.data->training().batches_per_epoch(0);
  CHECK(max_planned_steps(open, *run.data) == 10 * epoch);
  CHECK(max_planned_steps(text.config({"train.epochs=3"}), *run.data) == 3 * epoch);
  CHECK(max_planned_steps(run.config, *run.data) > 1'000'000 * epoch);
}

TEST_CASE("plan: a correction ends with whole epochs where the plan does, and is kept with the plan") {
  const Text text(400000);
  const Planned run(text, {"model.ngram_embedding={orders: [2], buckets: 512, width: 8, fresh_each_epoch: true}"});
  const int64_t epoch = run.data->training().batches_per_epoch(0);
  const int64_t found = run.check(100, 0.15).steps;
  CHECK(found > 2000);
  CHECK(found % epoch == 0);
  // Planned runs say when they are to be looked at; the same command keeps what was found, other minutes scale it.
  const RunConfig open = text.config();
  RunConfig begun = plan_for(open, 60).config;
  CHECK(begun.train.corrected.step == std::max<int64_t>(1, begun.train.steps / 10));
  CHECK(begun.train.corrected.steps == 0);
  CHECK(diff_configs(with_plan_of(begun, open), begun).empty());
  begun.train.steps = 120;
  begun.train.corrected = {12, 180, 120, 60};
  CHECK(diff_configs(with_plan_of(begun, open), begun).empty());
  CHECK(diff_configs(with_whole_epochs(begun, *run.data), begun).empty());
  RunConfig other = open;
  other.train.minutes = 20;
  CHECK(with_plan_of(begun, other).train.corrected.steps == 60);
  CHECK(with_plan_of(begun, other).train.corrected.step == 12);
  CHECK(with_plan_of(begun, other).train.corrected.planned_steps == with_plan_of(begun, other).train.steps);
  CHECK(with_plan_of(begun, other).train.corrected.planned_minutes == 20);
  other.train.minutes = 1;
  CHECK(with_plan_of(begun, other).train.corrected.steps == 13);
  // A plan of an earlier version is not looked at again, nor is one of steps that are given.
  begun.train.corrected = {};
  CHECK(with_plan_of(begun, open).train.corrected.step == 0);
  begun.train.corrected = {12, 180};
  CHECK(with_plan_of(begun, text.config({"train.steps=7", "model.width=64", "model.dropout=0"})).train.corrected.step ==
        0);
}

TEST_CASE("plan: what is left open needs minutes, and a language model") {
  const Text text(40000);
  const auto refused = [&](const std::vector<std::string>& more) {
    try {
      text.config(more);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused({}) == "");
  CHECK(refused({"train.minutes=0", "train.epochs=1"}).find("is left open") != std::string::npos);
  CHECK(refused({"train.steps=5", "model.width=64"}).find("model.dropout") != std::string::npos);
  CHECK(refused({"model.ngram_embedding={orders: [2], buckets: 0}", "train.steps=5"}).find("ngram_embedding.buckets") !=
        std::string::npos);
  CHECK(refused(
            {"train.optimizer={type: muon, weight_decay: null}", "train.steps=5", "model.width=64", "model.dropout=0"})
            .find("train.optimizer.weight_decay: is left open") != std::string::npos);
  // Without orders there is no table.
  CHECK(refused({"model.ngram_embedding.buckets=0", "train.steps=5", "model.width=64", "model.dropout=0"}).empty());
  CHECK_THROWS_WITH_AS(
      load_config<RunConfig>({}, {"name=x", "data.type=listops", "model.type=text-classifier",
                                  "model.layers=[{mixer: aft-simple}]", "model.width=0", "train.minutes=5"}),
      doctest::Contains("only that of a language model can be left open"), ConfigError);
  // A model cannot be made before its plan.
  CHECK_THROWS_WITH_AS(RunModel(text.config(), 256, 1, ParamMemory::none),
                       doctest::Contains("model.width: is left open"), ConfigError);
}

}  // namespace
}  // namespace capstan
