// CAPSTAN_CPU, which a portable build obeys and a native one refuses.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

bool says(const Outcome& outcome, const std::string& text) { return contains(outcome.err, text); }

TEST_CASE_FIXTURE(Samples, "CAPSTAN_CPU chooses the kernels") {
  const auto train = [&](const std::string& environment) {
    const Outcome outcome = run_shell(place, environment + " \"$capstan\" train --config lm.yaml --set train.steps=1");
    fs::remove_all(place / "runs");
    INFO(outcome.err);
    CHECK(indecency(outcome) == "");
    return outcome;
  };
  const Outcome best = train("CAPSTAN_CPU=");
  CHECK(best.code == 0);
  const bool portable = says(best, "SIMD x86-64-v");

  const Outcome lowest = train("CAPSTAN_CPU=x86-64-v2");
  CHECK(lowest.code == (portable ? 0 : 2));
  CHECK(says(lowest, portable ? "SIMD x86-64-v2," : "CAPSTAN_CPU=x86-64-v2: this build has "));

  const Outcome unknown = train("CAPSTAN_CPU=x86-64-v9");
  CHECK(unknown.code == 2);
  CHECK(says(unknown, "CAPSTAN_CPU=x86-64-v9: "));
  CHECK(says(unknown, portable ? "there is no such level; it can be x86-64-v2" : "cmake --preset portable"));

  // What glibc goes by on a CPU below the lowest level.
  if (portable) CHECK(run_shell(place, "readelf --notes \"$capstan\" | grep 'ISA needed' | grep x86-64-v2").code == 0);
}

TEST_CASE("waits of OpenMP are bounded, without a second start where a shell has left a variable to use") {
  const Workplace place;
  const auto starts = [&](const std::string& variables) {
    const Outcome outcome = run_shell(place, "env -i OMP_DISPLAY_ENV=verbose " + variables + " \"$capstan\" --version");
    CHECK(outcome.code == 0);
    int count = 0;
    for (const std::string& line : lines_of(outcome.err)) count += contains(line, "ENVIRONMENT BEGIN") ? 1 : 0;
    const size_t last = outcome.err.rfind("GOMP_SPINCOUNT = ");
    const std::string spins = last == std::string::npos ? "" : outcome.err.substr(last, 24);
    return std::pair(count, contains(spins, "'5000'"));
  };
  CHECK(starts("_=/bin/capstan") == std::pair(1, true));
  CHECK(starts("") == std::pair(2, true));
  CHECK(starts("_=/bin/capstan GOMP_SPINCOUNT=77") == std::pair(1, false));
  CHECK(starts("OMP_WAIT_POLICY=active _=/bin/capstan") == std::pair(1, false));
}

}  // namespace
}  // namespace capstan::testing
