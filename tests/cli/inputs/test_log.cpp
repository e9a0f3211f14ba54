// What the program says: its levels, and that a killed run has lost no line of its log.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>

#include "tests/cli/support/interruption.hpp"
#include "tests/cli/support/ranks.hpp"
#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

Words train_lm(const Words& more) {
  return Words("train --config lm.yaml --set train.steps=40 train.log_every=1") + more;
}

/// The lines that begin with a time, as those of a training do.
std::vector<std::string> timed_lines(const std::string& text) {
  std::vector<std::string> found;
  for (const std::string& line : lines_of(text))
    if (line.size() > 22 && line.front() == '[' && line[5] == '-' && line.substr(20, 2) == "] ") found.push_back(line);
  return found;
}

}  // namespace

TEST_CASE_FIXTURE(Samples, "--log-level, -q and -v decide what is shown, and train.log has everything from info on") {
  const struct {
    std::string name;
    Words options;
    bool info, debug;
  } cases[] = {{"usual", {}, true, false},
               {"quiet", {"-q"}, false, false},
               {"quiet-level", {"--log-level", "warning"}, false, false},
               {"verbose", {"-v"}, true, true}};
  for (const auto& [name, options, info, debug] : cases) {
    CAPTURE(name);
    const Outcome outcome = succeed(place, train_lm(Words{"name=" + name} + options));
    CHECK(contains(outcome.err, "finished at step 40") == info);
    CHECK(contains(outcome.err, "info: next: ") == info);
    CHECK(contains(outcome.err, "saved at step 40 in ") == debug);
    CHECK(outcome.out.empty());
    const std::string log = place.read("runs/" + name + "/train.log");
    CHECK(contains(log, "finished at step 40"));
    CHECK(contains(log, "saved at step 40 in ") == debug);
  }
  CHECK(contains(succeed(place, "eval runs/usual -v").err, "debug: capstan "));
  CHECK(succeed(place, "eval runs/usual -q").err.empty());
  check_refused(place, "both", "eval runs/usual -q -v", "--quiet excludes --verbose", 2);
  CHECK(contains(run(place, "eval runs/usual --log-level loud").err, "{debug,info,warning,error}"));
  CHECK(contains(run(place, "eval runs/none -q").err, "error: "));
}

TEST_CASE_FIXTURE(Samples, "kill -9 loses no line that was shown, and a resumed run appends to its log") {
  const Words command = train_lm("train.steps=100000 train.progress=plain train.save_every=10 train.valid_every=7");
  std::string before;
  for (int kill = 0; kill < 5; ++kill) {
    Process process(place, command);
    const std::string step = "Step " + std::to_string(20 + 15 * kill) + "/";
    while (!contains(process.errors(), step) && !process.ended()) usleep(1000);
    process.send(SIGKILL);
    const Outcome outcome = process.wait();
    REQUIRE(outcome.signal == SIGKILL);
    const std::string log = place.read("runs/lm/train.log");
    CHECK(log.compare(0, before.size(), before) == 0);
    const std::vector<std::string> kept = lines_of(log), shown = timed_lines(outcome.err);
    REQUIRE(shown.size() > 10);
    size_t lost = 0;
    for (size_t i = 0; i + 1 < shown.size(); ++i)  // the last one may be cut
      if (std::find(kept.begin(), kept.end(), shown[i]) == kept.end()) ++lost;
    CHECK(lost == 0);
    before = log;
  }
}

TEST_CASE_FIXTURE(Samples, "messages of the library reach the log of the run that is trained, too") {
  const Outcome outcome = succeed(place, train_lm({"-v"}));
  CHECK(contains(outcome.err, "debug: the data were read in"));
  for (const std::string& line : lines_of(place.read("runs/lm/train.log")))
    CHECK_MESSAGE(!timed_lines(line).empty(), line);
}

}  // namespace capstan::testing
