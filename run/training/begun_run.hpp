// The run that a folder has already: what it was begun with is not chosen again, or a run that goes on would have other
// bits. settle() and searches ask here. tests/run/test_settle.cpp.
#pragma once

#include <optional>

#include "run/setup/run_config.hpp"
#include "train/ranks/communicator.hpp"

namespace capstan {

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
