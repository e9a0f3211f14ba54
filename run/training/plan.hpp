// What train.minutes leaves open: the number of steps, and with it the size of a language model. train_run.cpp asks for
// a plan once and writes it into the run's config.yaml; training depends on that file alone, never on the time, or a
// run that is resumed or repeated would have other bits. tests/run/test_plan.cpp and
// tests/cli/training/test_minutes.cpp hold it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/batches/data_source.hpp"
#include "run/setup/run_config.hpp"
#include "run/setup/run_precision.hpp"
#include "train/records/pace.hpp"

namespace capstan {

// A few steps on trial, to know how long a training would take.

struct PilotTimes {
  double step = 0;        // seconds of a training step
  double evaluation = 0;  // seconds of an evaluation on the validation data; 0 without such data
  double save = 0;        // seconds of saving a checkpoint
};

/// Trains a model of this configuration for some steps (seconds, not minutes) and evaluates it on some batches; all of
/// it is then thrown away. Sizes of the model must be given. One process.
PilotTimes time_pilot(const RunConfig& config, const DataSource& data);

/// Times a few steps in each precision, in one process, and throws the model away. Nothing after a signal, or where
/// given_step_seconds() take the place of times.
std::optional<StepTimes> time_precisions(RunConfig config, const DataSource& data);

/// Seconds of a step, for tests: as a pilot is to find them, and as they are to be later.
struct StepSeconds {
  double piloted = 0, later = 0;
};
/// The times of the variable CAPSTAN_STEP_SECONDS ("PILOTED,LATER"), if it is set. Throws ConfigError where it cannot
/// be read.
std::optional<StepSeconds> given_step_seconds();

/// Is there something that plan() has to choose?
bool has_plan_to_make(const RunConfig& config);

/// `config` with what it leaves open as in `saved`, the configuration of the same run folder, whose plan is made and
/// whose precision and interval of evaluations are chosen. With other minutes than then, the numbers of steps are in
/// proportion.
RunConfig with_plan_of(const RunConfig& saved, RunConfig config);

/// Steps and evaluations of a planned run whose tables start again with every epoch, rounded as plan() does;
/// other runs as they are.
RunConfig with_whole_epochs(RunConfig config, const DataSource& data);

/// What is set wins over what an earlier plan has left in the configuration: a correction of another number of steps is
/// dropped, which `report` then says. Throws ConfigError for other minutes than those of the plan, which would have no
/// effect beside its number of steps.
void drop_other_correction(RunConfig& config, std::vector<std::string>& report);

/// How long the steps and the evaluation of a run take.
using Pilot = std::function<PilotTimes(const RunConfig&)>;
/// Is the memory enough for a run?
using Fits = std::function<bool(const RunConfig&)>;

/// A run that takes the time that is left of train.minutes.
struct RunPlan {
  RunConfig config;  // nothing is left open
  std::vector<std::string> report;
};

/// Chooses for a run of `seconds` seconds. Steps: as many as fit, with their evaluations; at most a tenth of them, but
/// at least one, for the warm-up that train.schedule.warmup_steps asks for. Width (a multiple of 16): so
/// that training reads three tokens for each parameter that a token is multiplied by, at most ten passes over the text,
/// and with no more such parameters than four for each token of the text. Dropout: from the number of passes. Buckets
/// of the n-gram embedding: from the tokens of the text. With tables that are emptied at every epoch, the last epoch is
/// worth beginning (worth_beginning() in train/loop/run_length.hpp) and evaluations fall on ends of epochs. No model
/// that does not fit into the memory is timed: if none fits, the smallest is returned for one step, without a report,
/// and the caller's check of the memory says what to change. Throws ConfigError when no width can be chosen.
RunPlan plan(const RunConfig& config, const DataSource& data, double seconds, const Pilot& pilot, const Fits& fits);

/// The most steps that a plan for `config`, with what it leaves open, takes in any time.
int64_t max_planned_steps(const RunConfig& config, const DataSource& data);

/// A run that was planned, at the step where its plan is looked at again.
struct PlanProgress {
  int64_t step = 0;
  double seconds = 0;  // since the command began that planned it
  double each = 0;     // seconds of a step, of late
  int64_t most = 0;    // max_planned_steps()
};
/// The number of steps from here on: as many as fit into the rest of train.minutes at the measured pace, with their
/// evaluations and checkpoints, but those that were planned where they take nearly that time.
struct PlanCheck {
  int64_t steps = 0;
  std::string report;
};
PlanCheck check_plan(const RunConfig& config, const DataSource& data, const PlanProgress& now, const Pace& pace);

}  // namespace capstan
