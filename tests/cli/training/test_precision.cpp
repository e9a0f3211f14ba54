// train.precision as a user meets it on a machine without bf16 instructions, and `auto` with rates that are given.
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
  for (const char* const command : {"eval", "inspect"}) {
    succeed(place, {command, "runs/lm"});
  }
}

const Words automatic = "train --config lm.yaml --set train.precision=auto";
constexpr const char* rates = "CAPSTAN_PRODUCT_RATES";

bool trained_in(const Workplace& place, const std::string& run, const std::string& precision) {
  return contains(place.read(run + "/config.yaml"), "precision: " + precision);
}

TEST_CASE("auto without bf16 instructions is float32, with the bits of float32") {
  const Variable old_cpu("DNNL_MAX_CPU_ISA", "AVX2");
  const SamplePlace place;
  const Outcome outcome = succeed(place, automatic);
  CHECK(contains(outcome.err, "train.precision: auto is float32: this "));
  CHECK(trained_in(place, "runs/lm", "float32"));
  succeed(place, "train --config lm.yaml --set train.precision=float32 name=given");
  const bool same = place.read("runs/lm/checkpoints/last/model.safetensors") ==
                    place.read("runs/given/checkpoints/last/model.safetensors");
  CHECK(same);
}

TEST_CASE("auto chooses by rates, says so once, and the run keeps it") {
  const Variable old_cpu("DNNL_MAX_CPU_ISA", "AVX2"), emulate("CAPSTAN_BF16", "emulate");
  const SamplePlace place;
  {
    const Variable twice(rates, "100,200");
    CHECK(contains(succeed(place, automatic).err,
                   "train.precision: auto is bf16: products run at 100 GFLOP/s in float32 and at 200 in bf16"));
  }
  CHECK(trained_in(place, "runs/lm", "bf16"));
  {
    // Another machine would choose otherwise: the run goes on as it was begun, with a warning.
    const Variable half(rates, "100,50");
    const std::string first = place.read("runs/lm/config.yaml");
    CHECK(contains(succeed(place, automatic).err, "nothing to do"));
    Words longer = automatic + "train.steps=9";
    const Outcome resumed = succeed(place, longer);
    CHECK(contains(resumed.err, "resumed from"));
    CHECK_FALSE(contains(resumed.err, "auto is"));
    CHECK(trained_in(place, "runs/lm", "bf16"));
    // A repeated run has the same bits; its precision is explicit, and slow here.
    const Outcome repeated = succeed(place, "train --config runs/lm/config.yaml --set name=again");
    CHECK(contains(repeated.err,
                   "warning: train.precision: bf16 is slower than float32 on this machine: products run at 50 "
                   "GFLOP/s in bf16 and at 100 in float32"));
    succeed(place, "train --config lm.yaml --set train.precision=bf16 train.steps=9 name=given");
    const bool same = place.read("runs/again/checkpoints/last/model.safetensors") ==
                      place.read("runs/given/checkpoints/last/model.safetensors");
    CHECK(same);
    // A run that begins here chooses float32.
    std::vector<std::string> fresh = automatic;
    fresh.push_back("name=fresh");
    CHECK(contains(succeed(place, fresh).err,
                   "auto is float32: products run at 100 GFLOP/s in float32 and at 50 in bf16"));
    CHECK(trained_in(place, "runs/fresh", "float32"));
  }
  const Variable nonsense(rates, "fast");
  std::vector<std::string> other = automatic;
  other.push_back("name=other");
  check_refused(place, "no rates", other, "CAPSTAN_PRODUCT_RATES: expected two rates in GFLOP/s ... got fast", 2);
}

TEST_CASE("auto times steps in both precisions where the CPU has instructions for bf16") {
  const SamplePlace place;
  if (!contains(succeed(place, "inspect --machine").out, "bf16: instructions")) {
    MESSAGE("skipped: this CPU has no instructions for bf16");
    return;
  }
  const Words wide = automatic + "model.width=256 train.batch_size=16 name=wide";
  const Outcome outcome = succeed(place, wide);
  INFO(outcome.err);
  const bool timed = contains(outcome.err, "train.precision: auto is bf16: a step takes ") ||
                     contains(outcome.err, "train.precision: auto is float32: a step takes ");
  CHECK((timed || contains(outcome.err, "auto is float32: products run at ")));  // whose ratio may be too small here
}

TEST_CASE("auto in a plan: its steps are timed in the precision that is chosen") {
  const Variable old_cpu("DNNL_MAX_CPU_ISA", "AVX2"), emulate("CAPSTAN_BF16", "emulate"), twice(rates, "100,200");
  const SamplePlace place;
  const Outcome outcome = succeed(place, "train --config lm.yaml --minutes 0.01 --set train.precision=auto");
  check_contains(outcome.err, {"plan for 0.01 min: ", "auto is bf16: "});
  CHECK(trained_in(place, "runs/lm", "bf16"));
}

TEST_CASE("auto with ranks: all take what the first one chooses, and one that cannot is named") {
  if (const auto reason = no_mpi()) {
    MESSAGE("skipped: " << *reason);
    return;
  }
  const Variable old_cpu("DNNL_MAX_CPU_ISA", "AVX2"), twice(rates, "100,200");
  const SamplePlace place;
  Words command = automatic + "train.lanes=2 train.batch_size=4";
  {
    const Variable emulate("CAPSTAN_BF16", "emulate");
    const Outcome outcome = run(place, mpirun(2, command));
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(contains(outcome.err, "auto is bf16"));
    CHECK(trained_in(place, "runs/lm", "bf16"));
  }
  // Only the first rank can.
  const Words other = Words{program_path()} + command + "name=mixed";
  const Outcome refused = run(place, mpirun_each({Words("env CAPSTAN_BF16=emulate") + other, other}));
  INFO(refused.err);
  CHECK(refused.code != 0);
  check_contains(refused.err, {"has chosen bf16, in which rank 1 (", "cannot train: bf16 is not available: "});
}

TEST_CASE("inspect --machine prints rates of products and memory") {
  const Workplace place;
  const Outcome outcome = succeed(place, "inspect --machine");
  for (const char* const part : {"machine: ", " kernels", "bf16: ", "memory: triad ", " GB/s", "GFLOP/s"})
    CHECK(contains(outcome.out, part));
  check_refused(place, "with a file", "inspect --machine lm.yaml", "--machine measures this machine", 2);
  check_refused(place, "nothing", "inspect", {"RUN|FILE ... is required, or --machine"}, 2);
}

}  // namespace
}  // namespace capstan::testing
