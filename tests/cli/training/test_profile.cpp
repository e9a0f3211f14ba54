// capstan train --profile
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

std::vector<double> losses(const Workplace& place, const std::string& run_name) {
  std::vector<double> result;
  for (const nlohmann::json& event : events_of(place, run_name)) result.push_back(event.at("loss").get<double>());
  return result;
}

TEST_CASE_FIXTURE(Samples, "train --profile prints a table and trains as without") {
  const auto train = [&](const std::string& name, const Words& options) {
    return succeed(place, train_words("lm.yaml", {"name=" + name, "train.log_every=1"}) + options).out;
  };
  CHECK(train("plain", {}) == "");
  const std::string table = train("profiled", {"--profile", "2"});
  check_contains(table, {"profile of 2 steps", "linear_cross_entropy", "backward", "optimizer", "data",
                         "tape and framework", "\nstep ", "\nPer step."});
  // A shorter run profiles all its steps.
  CHECK(train("bare", {"--profile"}).find("profile of 3 steps") != std::string::npos);
  CHECK(losses(place, "plain") == losses(place, "profiled"));
  CHECK(losses(place, "plain") == losses(place, "bare"));
}

TEST_CASE_FIXTURE(Samples, "train --profile wants a positive number of steps") {
  for (const char* const steps : {"0", "-3", "many", "1.5"})
    check_refused(place, steps, {"train", "--config", "lm.yaml", "--profile", steps}, "--profile", 2);
}

}  // namespace
}  // namespace capstan::testing
