#include "tests/faults/power_loss.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "tests/faults/disk_recorder.hpp"

namespace capstan::testing {
namespace {

/// One content of the folder, and how it came about.
struct State {
  size_t prefix;
  Survival survival;
  DiskImage image;
};

size_t hash_of(const DiskImage& image) {
  size_t hash = 0;
  const auto mix = [&hash](const std::string& text) { hash = hash * 1099511628211u + std::hash<std::string>()(text); };
  for (const auto& [path, entry] : image) {
    mix(path);
    mix(entry.kind + entry.content);
  }
  return hash;
}

/// The step of the run's last checkpoint; -1: there is none.
int64_t last_step_in(const DiskImage& image, const std::string& run) {
  const std::string prefix = run + "/checkpoints/step-";
  int64_t last = -1;
  for (const auto& [path, entry] : image)
    if (path.rfind(prefix, 0) == 0) last = std::max<int64_t>(last, std::stoll(path.substr(prefix.size())));
  return last;
}

/// The step of the run's last checkpoint once the log's first `prefix` entries are done and synced: what must not be
/// lost any more. -1: nothing was published.
int64_t promised_step(const DiskLog& log, const std::string& run, size_t prefix) {
  const std::string folder = run + "/checkpoints", publish = "rename " + folder + "/.unfinished-step-";
  std::mt19937 unused;
  int64_t step = -1;
  size_t published = 0;
  for (size_t i = 0; i < prefix; ++i) {
    if (log.entry(i).rfind(publish, 0) == 0) published = i + 1;
    if (published > 0 && log.entry(i) == "sync " + folder) {
      step = last_step_in(log.after(published, {Survival::Names::all, Survival::Data::all}, unused), run);
      published = 0;
    }
  }
  return step;
}

std::string explain(const Kind& kind, const DiskLog& log, const State& state) {
  std::string text = kind.name + ", power lost after entry " + std::to_string(state.prefix - 1) + " of " +
                     std::to_string(log.length() - 1) + " with " + describe(state.survival) + "; the last entries:";
  for (size_t i = state.prefix - std::min<size_t>(state.prefix, 6); i < state.prefix; ++i)
    text += "\n  " + log.entry(i);
  return text;
}

std::vector<State> states_of(const DiskLog& log, std::mt19937& random) {
  std::vector<State> states;
  std::set<size_t> seen;
  for (size_t prefix = 1; prefix <= log.length(); ++prefix)
    for (const Survival& survival : survivals()) {
      State state{prefix, survival, log.after(prefix, survival, random)};
      if (seen.insert(hash_of(state.image)).second) states.push_back(std::move(state));
    }
  return states;
}

void check_state(const Kind& kind, const DiskLog& log, const State& state) {
  const std::string name = explain(kind, log, state);
  INFO(name);
  for (const std::string& run : kind.runs) {
    const int64_t promised = promised_step(log, run, state.prefix), found = last_step_in(state.image, run);
    CHECK_MESSAGE(found >= promised, run, ": the checkpoint of step ", promised, " was synced, but is lost: now ",
                  found);
    if (found < promised) tell(name + "\n  lost: step " + std::to_string(promised) + " of " + run);
  }
  const Workplace place;
  write_image(state.image, place.folder());
  const Outcome outcome = run(place, kind.command);
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  const std::string differs = differences(result_of(place, kind, outcome), expected_result(kind));
  CHECK_MESSAGE(differs.empty(), "differs: ", differs);
  if (outcome.code != 0 || !differs.empty()) tell(name + "\n  differs: " + differs + "\n" + outcome.err);
}

/// A command that has reported success has nothing left to lose.
void check_end(const Kind& kind, const DiskLog& log) {
  std::mt19937 unused;
  for (const Survival::Names names : {Survival::Names::synced, Survival::Names::journal}) {
    const State state{log.length(), {names, Survival::Data::synced}, {}};
    const Workplace place;
    write_image(log.after(state.prefix, state.survival, unused), place.folder());
    const std::string differs = differences(result_of(place, kind, {}), expected_result(kind));
    INFO(kind.name, ", power lost after its end, with ", describe(state.survival));
    CHECK_MESSAGE(differs.empty(), "lost: ", differs);
    if (!differs.empty()) tell(kind.name + ", after its end, with " + describe(state.survival) + ": lost: " + differs);
  }
}

}  // namespace

PowerLosses lose_power(const Kind& kind, size_t most, uint32_t seed) {
  const Workplace place;
  prepare(place, kind);
  DiskRecorder recorder(place.folder());
  const TracedOutcome outcome = run_traced(place, kind.command, recorder);
  INFO(kind.name, ": ", outcome.err);
  REQUIRE(outcome.code == 0);
  REQUIRE(recorder.unknown() == "");
  const DiskLog& log = recorder.log();
  std::mt19937 random(seed);
  // The log is right if replaying all of it gives what is there.
  const DiskImage there = read_image(place.folder());
  const DiskImage replayed = log.after(log.length(), {Survival::Names::all, Survival::Data::all}, random);
  REQUIRE(hash_of(there) == hash_of(replayed));

  check_end(kind, log);
  std::vector<State> states = states_of(log, random);
  PowerLosses losses{log.length(), states.size(), std::min(most, states.size())};
  std::shuffle(states.begin(), states.end(), random);
  for (size_t i = 0; i < losses.tried; ++i) {
    check_state(kind, log, states[i]);
    if (i % 100 == 99)
      tell(kind.name + ": " + std::to_string(i + 1) + " of " + std::to_string(losses.tried) + " states");
  }
  return losses;
}

}  // namespace capstan::testing
