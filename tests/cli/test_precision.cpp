// train.precision as a user meets it on a machine without bf16 instructions.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/cli/samples.hpp"

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
  const Workplace place;
  write_samples(place);
  place.write("bf16.yaml", "train:\n  batch_size: 4\n  precision: bf16\n");
  const std::vector<std::string> training{"train", "--config", "lm.yaml", "bf16.yaml"};

  check_refused(place,
                {"in a file",
                 {},
                 training,
                 2,
                 {"bf16.yaml:3:14: train.precision: bf16 is not available: ", "use float32", "CAPSTAN_BF16=emulate"}});
  check_refused(place, {"as an override",
                        {},
                        {"train", "--config", "lm.yaml", "--set", "train.precision=bf16"},
                        2,
                        {"--set train.precision=bf16: bf16 is not available: "}});
  CHECK(run(place, {"config", "check", "--config", "lm.yaml", "bf16.yaml"}).code == 0);

  {
    const Variable emulate("CAPSTAN_BF16", "emulate");
    const Outcome outcome = run(place, training);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.err.find("bf16 is emulated on this machine") != std::string::npos);
  }
  for (const char* const command : {"eval", "inspect"}) {
    const Outcome outcome = run(place, {command, "runs/lm"});
    INFO(outcome.err);
    CHECK(outcome.code == 0);
  }
}

}  // namespace
}  // namespace capstan::testing
