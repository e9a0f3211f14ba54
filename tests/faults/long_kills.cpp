// kill -9 at random moments, for all kinds of training: at a moment of time or at a system call, the process alone or
// with its children, several times in a row. The same command then comes to the same bits as an unbroken run.
//   scripts/attack.sh kills [COUNT] [SEED]     CAPSTAN_ATTACK_ONLY=kind: one kind of run
#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "tests/faults/kinds.hpp"
#include "tests/faults/traced_process.hpp"

namespace capstan::testing {
namespace {

struct Length {
  int64_t calls = 0;
  std::chrono::microseconds time{};
};

/// How long an undisturbed run takes, in calls and in time.
Length length_of(const Kind& kind) {
  Length length;
  for (const bool traced : {true, false}) {
    const Workplace place;
    prepare(place, kind);
    KillAtCall none(0, Verdict::Kind::proceed);
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = traced ? run_traced(place, kind.command, none) : run(place, kind.command);
    INFO(kind.name, ": ", outcome.err);
    REQUIRE(outcome.code == 0);
    length.time = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
    if (traced) length.calls = none.last;
  }
  return length;
}

/// Starts the command and kills it. False: it was faster.
bool kill_once(const Workplace& place, const Kind& kind, const Length& length, std::mt19937& random,
               std::map<std::string, int>& where) {
  const bool alone = random() % 2 == 0;
  if (random() % 4 == 0) {  // by time: also between two calls, and before the first
    Process process(place, kind.command);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<uint64_t>(length.time.count())));
    process.send(SIGKILL);
    const bool killed = process.wait().signal == SIGKILL;
    if (killed) ++where["at a moment of time"];
    return killed;
  }
  KillAtCall fault(1 + static_cast<int64_t>(random() % static_cast<uint64_t>(length.calls)),
                   alone ? Verdict::Kind::kill : Verdict::Kind::kill_group);
  const TracedOutcome outcome = run_traced(place, kind.command, fault);
  if (outcome.signal != SIGKILL || outcome.hung) return false;
  ++where[fault.name];
  return true;
}

/// The command, as a user gives it after a kill: when a run of a killed sweep is still saving, once more.
Outcome run_to_the_end(const Workplace& place, const Kind& kind) {
  for (int i = 0;; ++i) {
    const Outcome outcome = run(place, kind.command);
    if (i == 100 || !contains(outcome.err, "another process is training in this folder")) return outcome;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

TEST_CASE("kill -9 at any moment: the same command ends with the bits of an unbroken run") {
  if (!tracing_problem().empty()) {
    MESSAGE("skipped: " << tracing_problem());
    CHECK_MESSAGE(std::getenv("CAPSTAN_ATTACK_COUNT") == nullptr, "an attack was asked for");
    return;
  }
  const Extent attack = extent(100);
  std::vector<Kind> kinds = chosen(training_kinds());
  std::mt19937 random(attack.seed);
  std::map<std::string, Length> lengths;
  std::map<std::string, int> where;
  for (const Kind& kind : kinds) lengths[kind.name] = length_of(kind);
  int made = 0, runs = 0;
  while (made < attack.count) {
    const Kind& kind = kinds[random() % kinds.size()];
    const int in_a_row = 1 + static_cast<int>(random() % 8);
    INFO(kind.name, ", seed ", attack.seed, ", after ", made, " kills, then up to ", in_a_row);
    const Workplace place;
    prepare(place, kind);
    for (int i = 0; i < in_a_row; ++i) made += kill_once(place, kind, lengths[kind.name], random, where) ? 1 : 0;
    const Outcome outcome = run_to_the_end(place, kind);
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    const std::string differs = differences(result_of(place, kind, outcome), expected_result(kind));
    CHECK_MESSAGE(differs.empty(), "differs: ", differs);
    if (outcome.code != 0 || !differs.empty()) tell(kind.name + ": differs: " + differs + "\n" + outcome.err);
    if (++runs % 25 == 0) tell(std::to_string(made) + " kills of " + std::to_string(runs) + " runs");
  }
  std::string moments;
  for (const auto& [name, count] : where) moments += (moments.empty() ? "" : ", ") + name + " " + std::to_string(count);
  MESSAGE(made, " kills of ", runs, " runs of ", kinds.size(), " kinds: ", moments);
}

}  // namespace
}  // namespace capstan::testing
