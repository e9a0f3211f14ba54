// A few steps on trial, to know how long a training would take.
#pragma once

#include <optional>

#include "data/batches/data_source.hpp"
#include "run/setup/run_config.hpp"

namespace capstan {

struct PilotTimes {
  double step = 0;        // seconds of a training step
  double evaluation = 0;  // of an evaluation on the validation data; 0 without such data
  double save = 0;        // of a checkpoint
};

/// Trains a model of this configuration for some steps (seconds, not minutes) and evaluates it on some batches; all of
/// it is then thrown away. Sizes of the model must be given. One process.
PilotTimes time_pilot(const RunConfig& config, const DataSource& data);

/// Seconds of a step, for tests: as a pilot is to find them, and as they are to be later.
struct StepSeconds {
  double piloted = 0, later = 0;
};
/// Those of CAPSTAN_STEP_SECONDS ("PILOTED,LATER"), if it is set. Throws ConfigError where it cannot be read.
std::optional<StepSeconds> given_step_seconds();

}  // namespace capstan
