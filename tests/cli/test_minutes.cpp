// Training for a given time: train.minutes and --minutes.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/cli/samples.hpp"

namespace capstan::testing {
namespace {

const std::vector<std::string> open_sizes = {"--set", "model.width=0", "model.dropout=null", "train.steps=0",
                                             "train.schedule.warmup_steps=1000000"};

std::vector<std::string> train_for(const std::string& minutes, const std::string& config = "lm.yaml") {
  std::vector<std::string> all{"train", "--config", config, "--minutes", minutes};
  all.insert(all.end(), open_sizes.begin(), open_sizes.end());
  return all;
}

double setting(const Workplace& place, const std::string& key) {
  for (const std::string& line : lines_of(place.read("runs/lm/config.yaml")))
    if (const size_t at = line.find(key + ": "); at != std::string::npos)
      return std::stod(line.substr(at + key.size() + 2));
  return -1;
}

TEST_CASE("a run is planned for its minutes, and its configuration repeats it") {
  const Workplace place;
  write_samples(place);
  const Outcome first = succeed(place, train_for("0.01"));
  INFO(first.err);
  CHECK(contains(first.err, "plan for 0.01 min: width "));
  const double steps = setting(place, "steps");
  CHECK(steps >= 1);
  CHECK(setting(place, "minutes") == 0.01);
  CHECK(setting(place, "warmup_steps") == std::max(1.0, std::floor(steps / 10)));
  CHECK(contains(first.err, " instead of 1000000)"));
  CHECK(setting(place, "width") >= 64);
  succeed(place, {"eval", "runs/lm"});
  // The same command: nothing is planned again.
  const Outcome second = succeed(place, train_for("0.01"));
  CHECK(contains(second.err, "nothing to do"));
  CHECK(contains(second.err, "raise --minutes to continue"));
  check_refused(place, {"a run to resume",
                        {},
                        {"train", "runs/lm"},
                        2,
                        {"to resume this run: capstan train --config runs/lm/config.yaml"}});
  CHECK(contains(succeed(place, {"train", "--config", "runs/lm/config.yaml"}).err, "nothing to do"));
  CHECK(setting(place, "steps") == steps);
  succeed(place, {"train", "--config", "runs/lm/config.yaml", "--set", "name=again"});
  const bool same = place.read("runs/lm/checkpoints/last/model.safetensors") ==
                    place.read("runs/again/checkpoints/last/model.safetensors");
  CHECK(same);
  // More time: the run goes on.
  const Outcome longer = succeed(place, train_for("0.02"));
  CHECK(contains(longer.err, "resumed from"));
  CHECK(setting(place, "steps") == 2 * steps);
}

TEST_CASE("--minutes replaces the steps of a configuration") {
  const Workplace place;
  write_samples(place);
  const Outcome outcome = succeed(place, {"train", "--config", "lm.yaml", "--minutes", "0.01"});
  CHECK(contains(outcome.err, "plan for 0.01 min: "));
  CHECK_FALSE(contains(outcome.err, "warm-up"));
  const Outcome given =
      succeed(place, {"train", "--config", "lm.yaml", "--set", "name=slow", "train.schedule.warmup_steps=4"});
  CHECK(contains(given.err, "warning: schedule: 4 of 6 steps are warm-up: lower train.schedule.warmup_steps"));
}

TEST_CASE("what is left open needs a time") {
  const Workplace place;
  write_samples(place);
  std::vector<std::string> without{"train", "--config", "lm.yaml"};
  without.insert(without.end(), open_sizes.begin(), open_sizes.end());
  without.push_back("train.epochs=1");
  check_refused(place, {"no minutes", {}, without, 2, {"model.width", "train.minutes"}});
  check_refused(place, {"minutes of nothing", {}, train_for("0"), 2, {"--minutes", "greater than 0"}});
  std::vector<std::string> both{"train", "--config", "lm.yaml", "--set", "train.minutes=1", "model.width=0"};
  check_refused(place, {"steps and an open width", {}, both, 2, {"model.width", "without train.steps"}});
  check_refused(place, {"minutes and steps",
                        {},
                        {"train", "--config", "lm.yaml", "--minutes", "1", "--set", "train.steps=5"},
                        2,
                        {"train.steps", "give one of the two"}});
}

}  // namespace
}  // namespace capstan::testing
