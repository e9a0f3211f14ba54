// A few steps on trial, whose model is then thrown away: what a plan and train.precision: auto choose by.
#pragma once

#include "data/batches/data_source.hpp"
#include "run/setup/run_config.hpp"

namespace capstan {

struct PilotTimes {
  double step = 0;        // seconds of a training step
  double evaluation = 0;  // seconds of an evaluation on the validation data; 0 without such data
  double save = 0;        // seconds of saving a checkpoint
};

/// Trains a model of this configuration for some steps and evaluates it on some batches. Sizes of the model must be
/// given. One process. `seconds`: no step is begun after them, but for a few that every pilot takes. Throws Stopped at
/// a signal.
PilotTimes time_pilot(const RunConfig& config, const DataSource& data, double seconds);

/// Seconds of a training step in each format.
struct PrecisionTimes {
  double float32 = 0, bf16 = 0;
};
/// Times steps in both formats by turns. `ranks`: so many processes share a batch; this one then takes it in so many
/// pieces. Throws Stopped at a signal.
PrecisionTimes time_precisions(const RunConfig& config, const DataSource& data, int ranks);

}  // namespace capstan
