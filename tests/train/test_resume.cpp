#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>

#include "core/io/file.hpp"
#include "core/machine/parallel.hpp"
#include "train/checkpointed_runs.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/checkpoints/open_model.hpp"

using namespace capstan;
using namespace capstan::testing;
TEST_CASE("a run broken anywhere ends with the weights, files and metrics of an unbroken one") {
  const TemporaryFolder folder;
  bool fresh = false;
  SUBCASE("") {}
  SUBCASE("a table starts again with each epoch") { fresh = true; }
  Setup unbroken(folder / "unbroken", 11, fresh);
  train(unbroken.inputs, config_of(12));
  const std::string metrics = comparable_metrics(folder / "unbroken");
  CHECK(std::count(metrics.begin(), metrics.end(), '\n') == 7 + 4);
  // Steps 4 and 8 end an epoch, 12 is the last one.
  for (int64_t stop = 0; stop < 12; ++stop) {
    CAPTURE(stop);
    const fs::path run = folder / ("broken-" + std::to_string(stop));
    {
      Setup first(run, 11, fresh);
      first.task.before_loss = [&](const Context& context) {
        if (context.training && context.step == static_cast<uint64_t>(stop)) send_signal(SIGTERM);
      };
      REQUIRE(train(first.inputs, config_of(12)).interrupted);
    }
    Setup second(run, 11, fresh);
    second.params.values()[0] = 99;  // must not matter
    const TrainResult result = train(second.inputs, config_of(12));
    CHECK_FALSE(result.interrupted);
    CHECK(second.weights() == unbroken.weights());
    CHECK(tensors_of(run / "checkpoints/last") == tensors_of(folder / "unbroken/checkpoints/last"));
    CHECK(checkpoint_name(run / "checkpoints/best") == checkpoint_name(folder / "unbroken/checkpoints/best"));
    CHECK(comparable_metrics(run) == metrics);
  }
}

TEST_CASE("a signal during evaluation: the evaluation is made up for, patience counts as before") {
  const TemporaryFolder folder;
  TrainConfig config = config_of(30);
  config.valid_every = 1;
  config.patience = 4;
  config.lr = 1e-30;  // nothing changes: no evaluation is better than the first
  Setup setup(folder / "run");
  for (int session = 0; session < 4; ++session) {
    std::atomic<bool> done{false};  // batches are evaluated by several threads
    setup.task.before_loss = [&](const Context& context) {
      if (!context.training && !done.exchange(session > 0)) send_signal(SIGUSR1);
    };
    if (session == 3) setup.task.before_loss = nullptr;
    const TrainResult result = train(setup.inputs, config);
    CHECK(result.interrupted == (session < 3));
    if (session == 3) {
      CHECK(result.state.stalled == 4);
      CHECK(result.state.step == 5);
    }
  }
}

TEST_CASE_FIXTURE(OneRun, "a finished run goes on when its limit is raised") {
  TrainConfig config = config_of(6);
  config.schedule.shape = ScheduleShape::constant;
  train(setup.inputs, config);
  config.steps = 12;
  config.log_every = 1;
  CHECK(train(setup.inputs, config).state.step == 12);
  CHECK(contains(read_text(setup / "run/train.log"), "train.steps was 6, is now 12"));
  Setup unbroken(setup / "unbroken");
  train(unbroken.inputs, config);
  CHECK(setup.weights() == unbroken.weights());
}

TEST_CASE_FIXTURE(OneRun, "a run that goes on does not write the checkpoint again that it goes on from") {
  TrainConfig config = config_of(4);  // a multiple of save_every
  train(setup.inputs, config);
  config.steps = 6;
  CHECK(published_by([&] { train(setup.inputs, config); }) == std::vector<std::string>{"step-6"});
}

TEST_CASE_FIXTURE(OneRun, "a run that goes on with other kernels says so once, and its checkpoints name them") {
  TrainConfig config = config_of(4);
  train(setup.inputs, config);
  const auto last = [&] { return setup / "run/checkpoints/last"; };
  RunState elsewhere = read_state(last());
  const std::string here = elsewhere.machine.at("SIMD");
  elsewhere.machine["SIMD"] = "abacus";
  write_text(last() / "state.json", to_json(elsewhere));
  const auto lines = [&] { return count_of(read_text(setup / "run/train.log"), "SIMD was abacus, is now " + here); };
  for (const int64_t steps : {6, 8}) {
    config.steps = steps;
    train(setup.inputs, config);
    CHECK(lines() == 1);
    CHECK(read_state(last()).machine.at("SIMD") == here);
  }
}

TEST_CASE_FIXTURE(OneRun, "what must not change within a run is named") {
  train(setup.inputs, config_of(4));
  struct Case {
    std::function<void(RunInputs&, TrainConfig&)> change;
    std::vector<std::string> expected;
  };
  for (const Case& c : {
           Case{[](RunInputs&in, TrainConfig&) { in.identity["model"] = "lookup\nwidth: 12"; },
                {"another model", "was \"width: 11\", is now \"width: 12\"", "begin another run with --set name=NEW"}},
           Case{[](RunInputs&in, TrainConfig&) { in.identity["data"] = "other"; }, {"other data", "drawn", "other"}},
           Case{[](RunInputs&in, TrainConfig&) { in.identity.erase("data"); }, {"other data", "not given"}},
           Case{[](RunInputs&in, TrainConfig&) { in.identity["tokenizer"] = "x"; },
                {"another tokenizer", "it had none"}},
           Case{[](RunInputs&in, TrainConfig&) { in.seed = 2; }, {"another seed: was 1, is now 2"}},
           Case{[](RunInputs&, TrainConfig&config) { config.batch_size = 7; },
                {"another train.batch_size: was 32, is now 7"}},
           Case{[](RunInputs&, TrainConfig&config) { config.optimizer = LionConfig{}; },
                {"train.optimizer: was adamw, is now lion"}},
           Case{[](RunInputs&, TrainConfig&config) { config.kernels = KernelChoice::portable; },
                {"train.kernels: was default, is now portable"}},
       }) {
    RunInputs inputs = setup.inputs;
    TrainConfig config = config_of(8);
    c.change(inputs, config);
    const std::string message = message_of([&] { train(inputs, config); });
    check_contains(message, c.expected);
  }
  Setup wider(setup / "run", 12);  // the identity says the same, the tensors do not
  CHECK(contains(message_of([&] { train(wider.inputs, config_of(8)); }),
                 "tensor weight is (11), this configuration needs (12)"));
}

TEST_CASE_FIXTURE(OneRun, "an identity that an earlier version saved is brought up to date before it is compared") {
  setup.inputs.identity = {{"model", "width: 4"}};
  TrainConfig config = config_of(4);
  train(setup.inputs, config);
  config.steps = 6;
  setup.inputs.identity = {{"model", "width: 4, depth: 1"}};
  CHECK(contains(message_of([&] { train(setup.inputs, config); }), "another model"));
  {
    Communicator one_process;
    Session session({setup / "run", setup.inputs.identity, 1, {}, 6}, config, one_process);
    LocalStep step(setup.task, setup.params, setup.data, session.config());
    CHECK(session.resume(step.parts(session.state()), [](const std::string& name, const std::string& saved) {
      return name == "model" ? saved + ", depth: 1" : saved;
    }));
    session.record();
    CHECK(train(session, step, {setup.task, setup.data, &setup.held_out}).state.step == 6);
  }
  config.steps = 8;
  CHECK(train(setup.inputs, config).state.step == 8);
}

TEST_CASE("a run in a folder whose name is not UTF-8 saves and resumes") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "Daten_\xfc");
  const fs::path before = fs::current_path();
  fs::current_path(folder / "Daten_\xfc");
  Setup setup("run");
  TrainConfig config = config_of(4);
  CHECK(message_of([&] { train(setup.inputs, config); }) == "no error");
  config.steps = 6;
  CHECK(message_of([&] { CHECK(train(setup.inputs, config).state.step == 6); }) == "no error");
  fs::current_path(before);
}

TEST_CASE("a run that goes on from an earlier step keeps a copy of the later lines, and is no damage") {
  TrainConfig config = config_of(8);
  config.log_every = 1;
  config.keep_last = 5;
  NewRun setup;
  train(setup.inputs, config);
  const fs::path run = setup / "run", metrics = run / "metrics.jsonl", log = run / "train.log";
  const std::string all = read_text(metrics);
  config.steps = 5;
  setup.inputs.resume_from = run / "checkpoints/step-4";
  train(setup.inputs, config);
  CHECK(read_text(metrics.string() + ".replaced-1") == all);
  CHECK(contains(read_text(log), "metrics.jsonl goes on from step 4: its later lines are kept in"));
  CHECK(fs::exists(run / "checkpoints/replaced-step-8"));
  CHECK(Checkpoints(run / "checkpoints").steps().back() == 5);
}

TEST_CASE("interrupted before its first step, a run that starts from another's checkpoint has one of its own") {
  const TemporaryFolder folder;
  Setup first(folder / "first");
  make_two_checkpoints(first);
  Setup second(folder / "second");
  const TrainConfig config = config_of(12);
  Communicator one_process;
  Session session({folder / "second", second.inputs.identity, 1, folder / "first/checkpoints/step-4", 12}, config,
                  one_process);
  LocalStep step(second.task, second.params, second.data, session.config());
  REQUIRE(session.resume(step.parts(session.state())));
  session.record();
  send_signal(SIGTERM);
  CHECK(train(session, step, {second.task, second.data}).interrupted);
  CHECK(fs::exists(folder / "second/checkpoints/step-4/model.safetensors"));
}

TEST_CASE_FIXTURE(OneRun, "old checkpoints go, the best and the last never") {
  TrainConfig config = config_of(20);
  config.save_every = 2;
  config.valid_every = 3;
  config.lr = 1e-30;  // nothing changes: the best is step 3
  config.keep_last = 3;
  train(setup.inputs, config);
  const Checkpoints checkpoints(setup / "run/checkpoints");
  CHECK(checkpoints.steps() == std::vector<int64_t>{3, 16, 18, 20});
  CHECK(checkpoint_name(setup / "run/checkpoints/best") == "step-3");
  CHECK(open_model(setup / "run").path() == (setup / "run/checkpoints/best/model.safetensors").string());
  CHECK(contains(message_of([&] { open_model(setup / "none"); }), "there is no model here"));
}
