// All that a configuration leaves open is chosen here, once, in the order of settle(), before the model is made. From
// there on a run depends on its config.yaml and its checkpoint alone: nothing changes a Settled, and a run that goes on
// takes what it was begun with (with_choices_of()). tests/run/test_settle.cpp, tests/cli/training/test_minutes.cpp and
// test_precision.cpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/machine/memory_limit.hpp"
#include "run/training/pilot.hpp"
#include "run/training/train_options.hpp"
#include "train/linear/ngram_rows.hpp"
#include "train/loop/signals.hpp"

namespace capstan {

/// What choices depend on besides configuration and data: this machine, unless a test puts in another.
struct Machine {
  MemoryLimit memory = memory_limit();
  std::function<uint64_t()> taken = live_memory;  // bytes of this process
  std::function<PilotTimes(const RunConfig&, const DataSource&, double seconds)> time_steps = time_pilot;
  std::function<PrecisionTimes(const RunConfig&, const DataSource&, int ranks)> time_precisions =
      capstan::time_precisions;
};

/// While it lives, signals are noted, by a thread that computes nothing.
struct SignalWatch {
  StopSignals signals;
  SignalThread receiver;
};

/// What a run is trained with.
struct Settled {
  RunConfig config;  // nothing is left open; written to config.yaml as it is
  std::unique_ptr<const DataSource> data;
  std::optional<NgramRows> ngrams;             // of a linear classifier
  std::vector<std::string> choices, warnings;  // lines for the run's log: of each choice, which was shown; of doubts
  std::unique_ptr<const SignalWatch> signals;  // so that none is lost in front of the session
};

/// Collective. Nothing of the run's folder is written, but for the n-grams of a linear classifier that are kept there
/// while they are read. Throws ConfigError where a choice needs the user, or the memory is too small, and Stopped, with
/// a line in the log, where one of the ranks was sent a signal.
Settled settle(const RunConfig& given, const TrainRunOptions& options, Communicator& ranks,
               const Machine& machine = {});

/// The run that a folder has already: what it was begun with is not chosen again, or a run that goes on would have
/// other bits.
struct BegunRun {
  RunConfig config;             // of its config.yaml, with nothing left open
  bool has_checkpoint = false;  // then it goes on; else it begins again
};
/// Collective: the run in `<folder>/<name>`, as rank 0 sees it, or none. Throws Error where its checkpoints have no
/// configuration that can be read.
std::optional<BegunRun> begun_run(const RunConfig& given, Communicator& ranks);

/// `given` with what it leaves open as in the begun run. Without a checkpoint these are only the choices by trial (the
/// plan, the precision): others follow from the data and would be the same again, unless the data were mended. Throws
/// ConfigError for other minutes than those of the plan.
RunConfig with_choices_of(const BegunRun& begun, RunConfig given);

/// Whether the run in `<folder>/<name>` has this configuration and has reached one of its limits, the last validation
/// included. A run that cannot be read is not finished: training will report why.
bool is_finished(const RunConfig& given);

}  // namespace capstan
