// Refuses one allocation after the other: the program must end with a message and the exit code 1, or as if nothing had
// happened, and the same command must then give the same bits as a run to which nothing happened.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tests/cli/support/program.hpp"
#include "tests/cli/support/samples.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

struct Subject {
  std::string name, command;
  bool trains;  // the command is repeated without a fault, and its checkpoints are compared
  int cases;    // refused allocations, spread over all of them
};

/// The command line that runs the program, and nothing else, with failing_malloc.
std::string faulty(const std::string& environment, const std::string& command) {
  return "exec timeout -k 5 60 env " + environment + " LD_PRELOAD=" CAPSTAN_FAILING_MALLOC " \"$capstan\" " + command;
}

long allocations(const Workplace& place, const std::string& environment, const std::string& command) {
  const Outcome outcome = run_shell(place, faulty(environment + " CAPSTAN_COUNT_ALLOCATIONS=count", command));
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  return std::strtol(place.read("count").c_str(), nullptr, 10);
}

/// What a run must have in the end: its checkpoints.
std::map<std::string, std::string> bits(const Workplace& place) {
  auto files = place.content("runs/faulty/checkpoints");
  for (auto file = files.begin(); file != files.end();)
    file = contains(file->first, "state.json") ? files.erase(file) : std::next(file);  // has times
  return files;
}

struct Tally {
  int refused = 0, tolerated = 0;
};

/// Empty if the outcome is one that a user may see.
std::string complaint(const Outcome& outcome) {
  if (outcome.signal != 0 || (outcome.code != 0 && outcome.code != 1))
    return "exit code " + std::to_string(outcome.code);
  const bool says = contains(outcome.err, "error: ") || contains(outcome.err, "error while loading shared libraries");
  if (outcome.code == 1 && !says) return "no message";
  return "";
}

void refuse_one(const Workplace& place, const Subject& subject, const std::string& environment,
                const std::string& which, const std::map<std::string, std::string>& expected,
                const std::string& undisturbed, Tally& tally) {
  CAPTURE(subject.name);
  CAPTURE(which);
  if (subject.trains) run_shell(place, "rm -rf runs/faulty");
  const Outcome outcome = run_shell(place, faulty(environment + " CAPSTAN_FAIL_ALLOCATION=" + which, subject.command));
  CHECK_MESSAGE(complaint(outcome) == "", outcome.err);
  if (outcome.code == 0 && !subject.trains) CHECK(outcome.out == undisturbed);
  ++(outcome.code == 0 ? tally.tolerated : tally.refused);
  if (!subject.trains) return;
  const Outcome again = run_shell(place, environment + " \"$capstan\" " + subject.command);
  CHECK_MESSAGE(again.code == 0, again.err);
  CHECK(bits(place) == expected);
}

int factor() {
  const char* const text = std::getenv("CAPSTAN_FAULTS");
  return text != nullptr ? std::max(1, std::atoi(text)) : 1;
}

void refuse_many(const Workplace& place, const Subject& subject, const std::string& environment) {
  std::map<std::string, std::string> expected;
  if (subject.trains) run_shell(place, "rm -rf runs/faulty");
  const long all = allocations(place, environment, subject.command);
  const std::string undisturbed =
      subject.trains ? "" : run_shell(place, environment + " \"$capstan\" " + subject.command).out;
  if (subject.trains) expected = bits(place);
  Tally tally;
  const long cases = std::min<long>(all, subject.cases * factor());
  for (long i = 0; i < cases; ++i) {
    const long at = 1 + i * all / cases;
    refuse_one(place, subject, environment, std::to_string(at) + (i % 4 == 3 ? "+" : ""), expected, undisturbed, tally);
  }
  MESSAGE(subject.name, ": ", all, " allocations, ", cases,
          " refused one by one (every fourth with all later ones): ", tally.refused, " errors with a message, ",
          tally.tolerated, " runs to the end");
}

}  // namespace

TEST_CASE("a refused allocation ends with a message, and the same command then gives the same bits") {
  const TrainedPlace place;
  place.write("texts.txt", "the tape turns\nout slow\n");
  const std::vector<Subject> subjects = {
      {"train a language model", "train -c lm.yaml --set name=faulty threads=2", true, 350},
      {"train a classifier", "train -c classifier.yaml --set name=faulty threads=2", true, 250},
      {"eval", "eval runs/lm --split valid", false, 150},
      {"predict", "predict runs/classifier texts.txt", false, 150},
      {"generate", "generate runs/lm --prompt the --tokens 8", false, 150},
      {"config check", "config check -c lm.yaml", false, 150},
      {"report", "report runs/lm --output report.html", false, 100},
  };
  // CAPSTAN_RESTARTED: without the second start, whose allocations would be counted anew.
  for (const Subject& subject : subjects) refuse_many(place, subject, "CAPSTAN_RESTARTED=1");
  // Every tenth of those before and in main() of the first start.
  refuse_many(place, {"start", "--version", false, 100}, "");
}
