// A piece of a run, computed again from a checkpoint and compared with what the run saved at its end: `capstan verify
// --replay`, by train_run() in a folder of its own. A new field of RunState or metrics.jsonl that depends on the
// session or the machine must be left out of the comparison in replay.cpp. tests/cli/runs/test_replay.cpp holds it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "train/ranks/communicator.hpp"

namespace capstan {

struct ReplayOptions {
  /// Steps from which and up to which the run is computed again; both have checkpoints, except step 0, which is where
  /// the run began. None: from the last but one checkpoint with an optimizer's state to the last one; from the begin
  /// where there is no other.
  std::optional<int64_t> from, to;
  std::vector<std::string> overrides;  // --set of the run's configuration: other threads, other paths of its data
};

/// Sets the steps from a text such as "1000..1500". Throws ConfigError.
void take_steps(const std::string& text, ReplayOptions& options);

struct ReplayReport {
  int64_t from = 0, to = 0;              // steps; both 0 for a run that is solved for
  std::vector<std::string> same;         // "42 tensors of model.safetensors"
  std::vector<std::string> differences;  // what differs, and where first
  std::vector<std::string> notes;        // what was not compared
  std::vector<std::string> machine;      // what computes otherwise here, which may be the reason of a difference
};

/// All ranks call it; the report is that of rank 0. What check_run() finds damaged is among its differences.
/// The folder of the run is only read. Throws Error where there is no such checkpoint, where the run cannot be
/// continued from it (other data, another configuration), and Stopped for a signal.
ReplayReport replay_run(const std::filesystem::path& folder, const ReplayOptions& options, Communicator& ranks);

void print_replay(const ReplayReport& report, std::ostream& out);

}  // namespace capstan
