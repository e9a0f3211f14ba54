// Losses and gradients that are not finite.
#include <doctest/doctest.h>

#include "train/checkpoints/checkpoint.hpp"
#include "train/support.hpp"

using namespace capstan;
using namespace capstan::testing;

TEST_CASE("a loss that is not finite leaves the weights as they were") {
  for (const double factor : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    NewRun setup;
    TrainConfig config = quiet_config(20);
    std::vector<real> before;
    setup.task.damage = [&](const Context& context) {
      if (!context.training || context.step != 5) return 1.0;
      before = setup.weights();
      return factor;
    };
    const std::string message = message_of([&] { train(setup.inputs, config); });
    check_contains(message, {"step 6", "the loss is not finite", "the weights were not changed",
                             "the checkpoint of step 4 is intact", "Lower train.lr", "grad_clip"});
    CHECK(setup.weights() == before);
    CHECK(Checkpoints(setup / "run/checkpoints").last() == setup / "run/checkpoints/step-4");
  }
}

TEST_CASE("the advice on grad_clip is to lower it, or to set it where it is off") {
  for (const double clip : {0.0, 2.5}) {
    NewRun setup;
    TrainConfig config = quiet_config(4);
    config.grad_clip = clip;
    setup.task.damage = [](const Context&) { return static_cast<double>(NAN); };
    const std::string message = message_of([&] { train(setup.inputs, config); });
    CHECK_MESSAGE(
        contains(message, clip > 0 ? "or lower train.grad_clip (now 2.5)" : "or set train.grad_clip (now off)"),
        message);
  }
}

TEST_CASE_FIXTURE(OneRun, "a gradient that is not finite is noticed as well") {
  setup.params.values()[0] = real{INFINITY};
  TrainConfig config = quiet_config(4);
  CHECK(contains(message_of([&] { train(setup.inputs, config); }), "not finite"));
}

TEST_CASE_FIXTURE(OneRun, "the first validation whose loss is not finite is warned of") {
  TrainConfig config = quiet_config(6);
  config.valid_every = 2;
  setup.task.damage = [](const Context& context) { return context.training ? 1.0 : NAN; };
  train(setup.inputs, config);
  const std::string log = read_text(setup / "run/train.log"), warning = "warning: the validation loss at step 2 is nan";
  CHECK_MESSAGE(contains(log, warning), log);
  CHECK(log.find("warning:") == log.rfind("warning:"));
  CHECK_FALSE(contains(log, "standard error"));
}
