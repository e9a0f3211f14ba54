// Training for a given time: train.minutes and --minutes.
#include <doctest/doctest.h>

#include <cmath>

#include <fmt/core.h>

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

TEST_CASE_FIXTURE(Samples, "a run is planned for its minutes, and its configuration repeats it") {
  const Outcome first = succeed(place, train_for("0.01"));
  INFO(first.err);
  CHECK(contains(first.err, "plan for 0.01 min: width "));
  const double steps = setting(place, "steps");
  CHECK(steps >= 1);
  CHECK(contains(first.err, "too few to learn much") == (steps < 50));
  CHECK(setting(place, "minutes") == 0.01);
  CHECK(setting(place, "warmup_steps") == std::max(1.0, std::floor(steps / 10)));
  CHECK(setting(place, "width") >= 64);
  succeed(place, "eval runs/lm");
  // The same command: nothing is planned again.
  const Outcome second = succeed(place, train_for("0.01"));
  check_contains(second.err, {"nothing to do", "raise train.steps to continue"});
  check_refused(place, "a run to resume", "train runs/lm",
                "to resume this run: capstan train --config runs/lm/config.yaml", 2);
  CHECK(contains(succeed(place, "train --config runs/lm/config.yaml").err, "nothing to do"));
  CHECK(setting(place, "steps") == steps);
  succeed(place, "train --config runs/lm/config.yaml --set name=again");
  CHECK(same_model(place, "lm", "again"));
  // The plan is that of its minutes; more steps can be given.
  check_refused(place, "other minutes", train_for("0.02"), "runs/lm was planned for 0.01 min: give --minutes 0.01", 2);
  const std::string more = fmt::format("train.steps={:g}", steps + 3);
  const Outcome longer = succeed(place, {"train", "--config", "runs/lm/config.yaml", "--set", more});
  CHECK(contains(longer.err, "resumed from"));
  CHECK(contains(longer.err, fmt::format("all {:g} steps are done", steps + 3)));
}

TEST_CASE_FIXTURE(Samples, "--minutes replaces the steps of a configuration") {
  const Outcome outcome = succeed(place, "train --config lm.yaml --minutes 0.01");
  CHECK(contains(outcome.err, "plan for 0.01 min: "));
  CHECK_FALSE(contains(outcome.err, "warm-up"));
  const Outcome given = succeed(place, "train --config lm.yaml --set name=slow train.schedule.warmup_steps=4");
  CHECK(contains(given.err, "warning: schedule: 4 of 6 steps are warm-up: lower train.schedule.warmup_steps"));
}

TEST_CASE_FIXTURE(Samples, "what is left open needs a time") {
  check_refused(place, "minutes of nothing", train_for("0"), "--minutes ... greater than 0", 2);
  check_refused(place, "minutes and steps", "train --config lm.yaml --minutes 1 --set train.steps=5",
                "train.steps ... give one of the two", 2);
}

}  // namespace
}  // namespace capstan::testing
