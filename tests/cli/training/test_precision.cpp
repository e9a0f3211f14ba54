// train.precision as a user meets it on a machine without bf16 instructions, and `auto`.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/cli/support/ranks.hpp"
#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

/// A variable of the programs that are started while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST_CASE("bf16 without instructions: refused with its place; emulated on request; its run evaluated anywhere") {
  const Variable old_cpu("DNNL_MAX_CPU_ISA", "AVX2");  // what oneDNN may find
  const SamplePlace place;
  place.write("bf16.yaml", "train:\n  batch_size: 4\n  precision: bf16\n");
  const Words training = "train --config lm.yaml bf16.yaml";

  check_refused(place, "in a file", training,
                "bf16.yaml:3:14: train.precision: bf16 is not available:  ... use float32 ... CAPSTAN_BF16=emulate", 2);
  check_refused(place, "as an override", "train --config lm.yaml --set train.precision=bf16",
                "--set train.precision=bf16: bf16 is not available: ", 2);
  CHECK(run(place, "config check --config lm.yaml bf16.yaml").code == 0);

  {
    const Variable emulate("CAPSTAN_BF16", "emulate");
    CHECK(contains(succeed(place, training).err, "bf16 is emulated on this machine"));
  }
  for (const char* const command : {"eval", "inspect"}) succeed(place, {command, "runs/lm"});
}

const Words automatic = "train --config lm.yaml --set train.precision=auto";
bool trained_in(const Workplace& place, const std::string& run, const std::string& precision) {
  return contains(place.read(run + "/config.yaml"), "precision: " + precision);
}

TEST_CASE("auto without bf16 instructions is float32, with the bits of float32") {
  const Variable old_cpu("DNNL_MAX_CPU_ISA", "AVX2");
  const SamplePlace place;
  const Outcome outcome = succeed(place, automatic);
  CHECK(contains(outcome.err, "train.precision: auto is float32: this "));
  CHECK(contains(place.read("runs/lm/train.log"), "machine: "));
  CHECK(trained_in(place, "runs/lm", "float32"));
  succeed(place, "train --config lm.yaml --set train.precision=float32 name=given");
  CHECK(same_model(place, "lm", "given"));
}

TEST_CASE_FIXTURE(Samples, "auto times steps in both formats, says so once, and the run keeps its choice") {
  const Outcome first = succeed(place, automatic);
  if (contains(first.err, "train.precision: auto is float32: this ")) {
    MESSAGE("skipped: this CPU has no instructions for bf16");
    return;
  }
  INFO(first.err);
  const bool bf16 = contains(first.err, "train.precision: auto is bf16: a step takes ");
  CHECK((bf16 || contains(first.err, "train.precision: auto is float32: a step takes ")));
  const std::string chosen = bf16 ? "bf16" : "float32";
  CHECK(trained_in(place, "runs/lm", chosen));
  CHECK(contains(succeed(place, automatic).err, "nothing to do"));
  const Outcome given = succeed(place, "train --config lm.yaml --set name=given train.precision=" + chosen);
  CHECK_FALSE(contains(given.err, "auto is"));
  CHECK(same_model(place, "lm", "given"));
}

TEST_CASE("a run goes on in the precision that it was begun in") {
  const Variable old_cpu("DNNL_MAX_CPU_ISA", "AVX2"), emulate("CAPSTAN_BF16", "emulate");
  const SamplePlace place;
  succeed(place, "train --config lm.yaml --set train.precision=bf16 train.keep_optimizer=true");
  const Outcome resumed = succeed(place, automatic + "train.steps=9 train.keep_optimizer=true");
  CHECK(contains(resumed.err, "resumed from"));
  CHECK_FALSE(contains(resumed.err, "auto is"));
  CHECK(trained_in(place, "runs/lm", "bf16"));
}

TEST_CASE("auto in a plan, and with portable kernels") {
  const Variable old_cpu("DNNL_MAX_CPU_ISA", "AVX2");
  const SamplePlace place;
  const Outcome planned = succeed(place, "train --config lm.yaml --minutes 0.01 --set train.precision=auto");
  check_contains(planned.err, {"plan for 0.01 min: ", "auto is float32: "});
  CHECK(trained_in(place, "runs/lm", "float32"));
  const Outcome portable = succeed(place, automatic + "train.kernels=portable name=portable");
  CHECK(contains(portable.err, "auto is float32: portable kernels gain nothing by bf16"));
}

TEST_CASE("auto with ranks: all take what the first one chooses") {
  if (const auto reason = no_mpi()) {
    MESSAGE("skipped: " << *reason);
    return;
  }
  const SamplePlace place;
  const Outcome outcome = run(place, mpirun(2, automatic + "train.lanes=2 train.batch_size=4"));
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(contains(outcome.err, "auto is "));
  CHECK((trained_in(place, "runs/lm", "float32") || trained_in(place, "runs/lm", "bf16")));
}

}  // namespace
}  // namespace capstan::testing
