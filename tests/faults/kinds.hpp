// The kinds of runs that the tests of this folder attack: every system, both tasks, every source, every file a run may
// write. Each takes a fraction of a second.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {

/// A command, what must have happened before it, and what it leaves behind.
struct Kind {
  std::string name;
  Words command;
  std::vector<Words> before = {};      // commands that run first, undisturbed
  bool half_done = false;              // the command was killed in the middle once
  std::vector<std::string> runs = {};  // folders it trains; none: it prints its result
};

/// Runs of `train` and `sweep`, from their beginning.
const std::vector<Kind>& training_kinds();
/// Training, resumed runs, and commands that read a run.
const std::vector<Kind>& all_kinds();
const Kind& kind_called(const std::string& name);

/// Input files and configurations of all kinds.
void write_inputs(const Workplace& place);
/// The inputs, and everything that must be there before the command: the same bytes in every call.
void prepare(const Workplace& place, const Kind& kind);

/// What must be the same however often a command was disturbed: the weights, the optimizer's state and the metrics of
/// its runs, by their path, or what it printed. Metrics are without times and memory.
using Result = std::map<std::string, std::string>;
Result result_of(const Workplace& place, const Kind& kind, const Outcome& outcome);
/// Of an undisturbed run; made once.
const Result& expected_result(const Kind& kind);
/// Names of what differs; empty if nothing does.
std::string differences(const Result& result, const Result& expected);

/// Count and seed: CAPSTAN_ATTACK_COUNT and CAPSTAN_ATTACK_SEED of the environment (scripts/attack.sh), or these.
struct Extent {
  int count;
  uint32_t seed;
};
Extent extent(int default_count);
/// CAPSTAN_ATTACK_ONLY: the name of one kind; empty: all.
std::vector<Kind> chosen(const std::vector<Kind>& kinds);

/// A line of progress on standard error, if CAPSTAN_ATTACK_COUNT asks for more than a test does.
void tell(const std::string& line);

}  // namespace capstan::testing
