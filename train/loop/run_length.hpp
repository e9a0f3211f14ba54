// The length of a run: in steps, from its configuration, and whether it has ended. Plans, schedules, the session and
// the loop ask here, so that they agree. tests/train/test_run_length.cpp, test_loop.cpp and test_fresh_tables.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/batches/batcher.hpp"
#include "train/checkpoints/run_state.hpp"
#include "train/configuration/train_config.hpp"

namespace capstan {

/// Steps after which the run ends, for schedules and time left; 0 = not known. The loop ends by reached_limit().
int64_t total_steps(const BatchSource& source, const TrainConfig& config);

struct ReachedLimit {
  std::string reason, key;  // reason: for the log, "all 500 steps are done"; key: what to raise to continue
};
/// The limit of the configuration that a run has reached after `seconds` of training; nothing while it continues.
std::optional<ReachedLimit> reached_limit(const TrainConfig& config, const RunState& state, double seconds);

/// Whether the run has reached a limit and its last step was validated, if there is something to validate it with.
bool has_ended(const TrainConfig& config, const RunState& state);

/// Steps between evaluations: train.valid_every. Where that is open, at least 500, and so many that evaluations read at
/// most a tenth as many examples as training, which takes about a twentieth of the time; at even distances, so that the
/// last one is at the end. `valid` may be null.
int64_t evaluation_interval(const BatchSource& train, const BatchSource* valid, const TrainConfig& config);

/// Tables that are emptied at every epoch (train/optimizers/optimizer.hpp): is it worth while to begin epoch `epoch`
/// (from 0) and end after `steps` of its `all` steps, rather than to end with full tables before it? Always in the
/// first one; in the second with more than half of it; later only with all of it (docs/notes/ngrams.md).
bool worth_beginning(int64_t epoch, int64_t steps, int64_t all);

/// A warning for a run with such tables whose last epoch was not worth beginning. Nothing when the end is not known.
std::optional<std::string> fresh_tables_warning(const BatchSource& source, const TrainConfig& config);

}  // namespace capstan
