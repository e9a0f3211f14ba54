// One training run, as `capstan train` and each run of `capstan sweep` do it.
#pragma once

#include <string>

#include "apps/runs/run_config.hpp"

namespace capstan {

struct TrainRunOptions {
  std::string resume_from;    // a checkpoint's folder instead of the last one
  int64_t profile_steps = 0;  // 0: no profile
};

/// Steps of the run before those that are profiled.
constexpr int64_t profile_warmup = 3;

/// What a configuration asks for and this machine does not have.
void check_trainable(const RunConfig& config, Problems& problems);

/// Reads the data, makes the model, trains in `<folder>/<name>`. Returns an exit code.
int train_run(const RunConfig& config, const TrainRunOptions& options = {});

/// Has the run in `<folder>/<name>` this configuration, and reached one of its limits, validation included? What
/// cannot be read is not finished: training will say why.
bool is_finished(const RunConfig& config);

}  // namespace capstan
