// What train.minutes leaves open: the number of steps, and with it the size of a language model. settle() asks for a
// plan once, which is written into the run's config.yaml; training depends on that file alone, never on the time, or a
// run that is resumed or repeated would have other bits. tests/run/test_plan.cpp and
// tests/cli/training/test_minutes.cpp hold it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/batches/data_source.hpp"
#include "run/setup/run_config.hpp"
#include "run/training/pilot.hpp"

namespace capstan {

/// Is there something that plan() has to choose?
bool has_plan_to_make(const RunConfig& config);

/// `config`, which has a plan to make, with that of `saved`, the configuration of the same run folder. Throws
/// ConfigError for other minutes than those of the plan.
RunConfig with_plan_of(const RunConfig& saved, RunConfig config);

/// How long the steps and the evaluation of a run take.
using Pilot = std::function<PilotTimes(const RunConfig&)>;
/// Is the memory enough for a run?
using Fits = std::function<bool(const RunConfig&)>;

/// A run that takes the time that is left of train.minutes.
struct RunPlan {
  RunConfig config;            // nothing is left open
  bool memory_limits = false;  // would a larger model have been taken?
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

}  // namespace capstan
