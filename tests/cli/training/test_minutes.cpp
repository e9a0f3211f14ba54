// Training for a given time: train.minutes and --minutes.
#include <doctest/doctest.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <fmt/core.h>

#include "tests/cli/support/interruption.hpp"
#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

const Words open_sizes = "--set model.width=0 model.dropout=null train.steps=0 train.schedule.warmup_steps=1000000";

Words train_for(const std::string& minutes, const std::string& config = "lm.yaml") {
  return Words{"train", "--config", config, "--minutes", minutes} + open_sizes;
}

double setting(const Workplace& place, const std::string& key) {
  for (const std::string& line : lines_of(place.read("runs/lm/config.yaml")))
    if (const size_t at = line.find(key + ": "); at != std::string::npos)
      return std::stod(line.substr(at + key.size() + 2));
  return -1;
}

TEST_CASE("a run is planned for its minutes, and its configuration repeats it") {
  const SamplePlace place;
  const Outcome first = succeed(place, train_for("0.01"));
  INFO(first.err);
  CHECK(contains(first.err, "plan for 0.01 min: width "));
  const double steps = setting(place, "steps");
  CHECK(steps >= 1);
  CHECK(contains(first.err, "too few to learn much") == (steps < 50));
  CHECK(setting(place, "minutes") == 0.01);
  CHECK(setting(place, "warmup_steps") == std::max(1.0, std::floor(steps / 10)));
  CHECK(contains(first.err, " instead of 1000000)"));
  CHECK(setting(place, "width") >= 64);
  succeed(place, "eval runs/lm");
  // The same command: nothing is planned again.
  const Outcome second = succeed(place, train_for("0.01"));
  check_contains(second.err, {"nothing to do", "raise --minutes to continue"});
  check_refused(place, "a run to resume", "train runs/lm",
                "to resume this run: capstan train --config runs/lm/config.yaml", 2);
  CHECK(contains(succeed(place, "train --config runs/lm/config.yaml").err, "nothing to do"));
  CHECK(setting(place, "steps") == steps);
  succeed(place, "train --config runs/lm/config.yaml --set name=again");
  const bool same = place.read("runs/lm/checkpoints/last/model.safetensors") ==
                    place.read("runs/again/checkpoints/last/model.safetensors");
  CHECK(same);
  // More time: the run goes on.
  const Outcome longer = succeed(place, train_for("0.02"));
  CHECK(contains(longer.err, "resumed from"));
  CHECK(setting(place, "steps") == 2 * steps);
}

/// Steps of the program have this length for its plan while it lives: as piloted, and as found later.
struct StepSeconds {
  explicit StepSeconds(const char* value) { setenv("CAPSTAN_STEP_SECONDS", value, 1); }
  ~StepSeconds() { unsetenv("CAPSTAN_STEP_SECONDS"); }
  StepSeconds(const StepSeconds&) = delete;
  StepSeconds& operator=(const StepSeconds&) = delete;
};

TEST_CASE("a plan is looked at again once, and the run's configuration repeats what was found") {
  const StepSeconds three_times("0.6,0.2");
  const SamplePlace place;
  const Words command =
      "train --config lm.yaml --minutes 1 --set train.log_every=50 train.save_every=20 train.valid_every=100";
  const auto named = [&](const std::string& name) {
    Words all = command;
    all.push_back("name=" + name);
    return all;
  };
  const auto repeat = [&](const std::string& of, const std::string& name) {
    const Outcome outcome =
        succeed(place, {"train", "--config", "runs/" + of + "/config.yaml", "--set", "name=" + name});
    CHECK_FALSE(contains(outcome.err, "looked at again"));
    CHECK(contains(outcome.err, "train.corrected: training ends after"));
    check_same_weights(place, name, of);
    check_same_metrics(place, name, of);
  };
  const Outcome first = succeed(place, command);
  INFO(first.err);
  CHECK(contains(first.err, "plan looked at again at step "));
  const std::string config = place.read("runs/lm/config.yaml");
  const auto number = [&](const std::string& text, const std::string& key) {
    return std::stoll(text.substr(text.find(key) + key.size()));
  };
  const int64_t steps = number(config, "\n  steps: "), corrected = number(config, "\n    steps: ");
  CHECK(corrected > steps);
  CHECK(contains(first.err, fmt::format("all {} steps are done", corrected)));
  CHECK(contains(succeed(place, command).err, "nothing to do"));
  repeat("lm", "again");
  // What is set wins over the correction, or is refused.
  const Outcome given = succeed(place, "train --config runs/lm/config.yaml --set name=given train.steps=7");
  check_contains(given.err, {fmt::format("train.corrected: was of a plan of {} steps", steps), "all 7 steps are done"});
  CHECK(contains(succeed(place, "train --config runs/given/config.yaml").err, "nothing to do"));
  check_refused(place, "other minutes", "train --config runs/lm/config.yaml --set name=other train.minutes=3",
                "were planned for 1 min ... give --minutes 3", 2);
  const int64_t more = corrected + 5;
  const Outcome longer =
      succeed(place, {"train", "--config", "runs/lm/config.yaml", "--set", fmt::format("train.steps={}", more)});
  check_contains(longer.err, {"resumed from", fmt::format("all {} steps are done", more)});

  Process process(place, named("killed"));
  while (!process.ended() && !contains(process.errors(), "looked at again"))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  process.send(SIGKILL);
  process.wait();
  const std::string kept = place.read("runs/killed/config.yaml");
  CHECK(number(kept, "\n    steps: ") > number(kept, "\n  steps: "));
  CHECK_FALSE(contains(succeed(place, named("killed")).err, "looked at again"));
  const bool same = place.read("runs/killed/config.yaml") == kept;
  CHECK(same);
  repeat("killed", "unbroken");

  const StepSeconds none("0.6");
  check_refused(place, "no times", named("other"), "CAPSTAN_STEP_SECONDS: expected two numbers above 0", 2);
}

TEST_CASE("--minutes replaces the steps of a configuration") {
  const SamplePlace place;
  const Outcome outcome = succeed(place, "train --config lm.yaml --minutes 0.01");
  CHECK(contains(outcome.err, "plan for 0.01 min: "));
  CHECK_FALSE(contains(outcome.err, "warm-up"));
  const Outcome given = succeed(place, "train --config lm.yaml --set name=slow train.schedule.warmup_steps=4");
  CHECK(contains(given.err, "warning: schedule: 4 of 6 steps are warm-up: lower train.schedule.warmup_steps"));
}

TEST_CASE("what is left open needs a time") {
  const SamplePlace place;
  const Words without = Words("train --config lm.yaml") + open_sizes + "train.epochs=1";
  check_refused(place, "no minutes", without, "model.width ... train.minutes", 2);
  check_refused(place, "minutes of nothing", train_for("0"), "--minutes ... greater than 0", 2);
  Words both = "train --config lm.yaml --set train.minutes=1 model.width=0";
  check_refused(place, "steps and an open width", both, "model.width ... without train.steps", 2);
  check_refused(place, "minutes and steps", "train --config lm.yaml --minutes 1 --set train.steps=5",
                "train.steps ... give one of the two", 2);
}

}  // namespace
}  // namespace capstan::testing
