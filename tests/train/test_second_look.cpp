// A planned number of steps that is corrected while the run goes on.
#include <doctest/doctest.h>

#include <csignal>

#include "core/machine/parallel.hpp"
#include "train/checkpointed_runs.hpp"
#include "train/rank_threads.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

/// Its time is too long to be the reason for a look.
TrainConfig planned(const Correction& corrected) {
  TrainConfig config = config_of(10);
  config.minutes = 1e5;
  config.corrected = corrected;
  return config;
}

/// Looks that find `steps`.
struct Looks {
  int64_t steps = 0;
  int count = 0;
  int64_t step = 0;
  LookAgain look() {
    return [this](int64_t at, double, const Pace& pace) {
      ++count;
      step = at;
      CHECK(pace.recent_step() > 0);
      return steps;
    };
  }
};

void check_same_runs(const TemporaryFolder& folder, const std::string& name, const std::string& other) {
  const bool same =
      tensors_of(folder / (name + "/checkpoints/last")) == tensors_of(folder / (other + "/checkpoints/last"));
  CHECK(same);
  CHECK(comparable_metrics(folder / name) == comparable_metrics(folder / other));
}

TEST_CASE("a corrected run has the bits of one whose configuration has the correction") {
  for (const int64_t steps : {20, 7, 10}) {
    CAPTURE(steps);
    const TemporaryFolder folder;
    Looks looks{steps};
    Setup looked(folder / "looked"), given(folder / "given"), plain(folder / "plain");
    looked.inputs.look_again = looks.look();
    CHECK(train(looked.inputs, planned({4, 0})).state.step == steps);
    CHECK(looks.count == 1);
    CHECK(looks.step == 4);
    given.inputs.look_again = looks.look();
    CHECK(contains(train(given.inputs, planned({4, steps})).reason, fmt::format("all {} steps", steps)));
    CHECK(looks.count == 1);
    check_same_runs(folder, "looked", "given");
    train(plain.inputs, config_of(10));
    CHECK((plain.weights() == looked.weights()) == (steps == 10));
  }
}

TEST_CASE("a run is not looked at without being asked for, and at a tenth of its time if that comes first") {
  const TemporaryFolder folder;
  Looks looks{9};
  Setup never(folder / "never"), early(folder / "early");
  never.inputs.look_again = early.inputs.look_again = looks.look();
  TrainConfig config = planned({});
  config.minutes = 1e-9;
  train(never.inputs, config);
  CHECK(looks.count == 0);
  config.corrected.step = 5;
  train(early.inputs, config);
  CHECK(looks.step == 2);  // the first step is no measure
}

TEST_CASE("a run that is killed after its correction goes on to the same bits, from any checkpoint") {
  const TemporaryFolder folder;
  Setup unbroken(folder / "unbroken");
  train(unbroken.inputs, planned({5, 20}));
  for (const uint64_t last : {5, 9, 15}) {  // its checkpoint is in front of the correction, or after it
    CAPTURE(last);
    const std::string name = "killed-" + std::to_string(last);
    Looks looks{20};
    {
      Setup killed(folder / name);
      killed.inputs.look_again = looks.look();
      killed.task.before_loss = [&](const Context& context) {
        if (context.training && context.step == last) throw std::runtime_error("killed");
      };
      CHECK_THROWS(train(killed.inputs, planned({5, 0})));
    }
    Setup second(folder / name);
    second.inputs.look_again = looks.look();
    train(second.inputs, planned({5, 20}));
    CHECK(looks.count == 1);
    check_same_runs(folder, name, "unbroken");
  }
  // Killed before it, the run is looked at later.
  Looks looks{20};
  for (const int session : {0, 1}) {
    Setup stopped(folder / "stopped");
    stopped.inputs.look_again = looks.look();
    stopped.task.before_loss = [&](const Context& context) {
      if (session == 0 && context.training && context.step == 3) send_signal(SIGTERM);
    };
    train(stopped.inputs, planned({5, 0}));
    CHECK(looks.count == session);
  }
}

TEST_CASE("the first of several ranks looks, and all are corrected") {
  const TemporaryFolder folder;
  Setup given(folder / "given");
  TrainConfig config = planned({4, 13});
  config.lanes = 2;
  train(given.inputs, config);
  config.corrected.steps = 0;
  Looks looks{13};
  set_threads(1);
  run_ranks(2, [&](Communicator& ranks) {
    Setup setup(folder / "ranks");
    setup.inputs.ranks = &ranks;
    setup.inputs.look_again = looks.look();
    train(setup.inputs, config);
  });
  set_threads(0);
  CHECK(looks.count == 1);
  check_same_runs(folder, "ranks", "given");
}

TEST_CASE("a correction belongs to a plan") {
  const auto problem = [](int64_t steps, double minutes, const Correction& corrected) {
    TrainConfig config = config_of(steps);
    config.epochs = steps == 0 && minutes == 0 ? 1 : 0;
    config.minutes = minutes;
    config.corrected = corrected;
    ProblemText problems("train");
    validate(config, problems);
    return problems.text();
  };
  CHECK(problem(10, 0, {4, 20}).empty());
  CHECK(problem(10, 5, {4, 0}).empty());
  CHECK(problem(0, 5, {4, 20}).empty());  // replaced by a new plan
  CHECK(contains(problem(0, 0, {4, 20}), "train.corrected: needs train.steps"));
  CHECK(contains(problem(10, 0, {4, 4}), "train.corrected: expected a step from 1, and more steps"));
  CHECK(contains(problem(10, 0, {0, 4}), "train.corrected: expected a step from 1"));
  CHECK(contains(problem(10, 0, {4, 0}), "train.corrected: needs train.minutes"));
}

}  // namespace
