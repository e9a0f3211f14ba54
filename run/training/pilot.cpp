// The pilot of plan.hpp: a model is trained for some steps at a thousandth of the rate and thrown away. Tests give
// times by CAPSTAN_STEP_SECONDS instead (tests/cli/training/test_minutes.cpp), since measured ones differ from run to
// run.
#include "run/training/plan.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/median.hpp"
#include "core/base/stop.hpp"
#include "core/io/log.hpp"
#include "core/machine/parallel.hpp"
#include "core/machine/pool.hpp"
#include "run/setup/run_model.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/loop/signals.hpp"
#include "train/records/pace.hpp"
#include "train/steps/training_step.hpp"

namespace capstan {
namespace {

/// How many steps are taken: some that are not timed, at least so many that are, and no further one after a time.
struct Patience {
  int warm_up, min_steps;
  double seconds;
};
constexpr Patience for_plan{2, 1, 3}, for_precision{1, 2, 0.5};
constexpr int max_steps = 200;

/// Seconds of a step, as the median of some after the first ones, which take longer since they touch new memory; and an
/// estimate for a checkpoint.
PilotTimes step_times(const RunModel& model, ParamStore& params, const DataSource& data, const TrainConfig& config,
                      const Patience& patience) {
  LocalStep step(model.model(), params, data.training(), config);
  RunState state;
  std::vector<double> seconds;
  const auto [warm_up, min_steps, enough] = patience;
  const Stopwatch since_first;
  for (int i = 0; i < max_steps && (i < warm_up + min_steps || since_first.seconds() < enough); ++i) {
    const Stopwatch watch;
    step.run(state, config.lr * 1e-3, [] { return StopStatus{}; });
    if (i >= warm_up) seconds.push_back(watch.seconds());
  }
  return {median(std::move(seconds)), 0, seconds_to_save(step.parts(state))};
}

/// Seconds of an evaluation on the validation data, in proportion to those of a few batches.
double evaluation_seconds(const RunModel& model, const DataSource& data, int64_t micro_batch_tokens) {
  if (!data.has(Split::valid)) return 0;
  const std::unique_ptr<BatchSource> valid = data.validation();
  const int64_t batches = valid->batches_per_epoch(0);
  const int64_t tried = std::min<int64_t>(batches, 4 * threads());
  const SomeBatches first_batches(*valid, {tried, batches - tried}, 0);
  const Stopwatch watch;
  evaluate(model.model(), first_batches, micro_batch_tokens);
  return watch.seconds() * static_cast<double>(batches) / static_cast<double>(std::max<int64_t>(tried, 1));
}

PilotTimes times_of(const RunConfig& config, const DataSource& data, const Patience& patience, bool evaluated) {
  PilotTimes times;
  {
    RunModel model(config, model_vocabulary(config, data.tokenizer()), static_cast<int64_t>(data.classes().size()));
    model.prepare(data.tokenizer(), data.class_counts(), data.training().examples_per_epoch());
    times = step_times(model, model.params(), data, config.train, patience);
    if (evaluated) times.evaluation = evaluation_seconds(model, data, config.train.micro_batch_tokens);
  }
  pool::trim();
  return times;
}

}  // namespace

std::optional<StepSeconds> given_step_seconds() {
  constexpr const char* variable = "CAPSTAN_STEP_SECONDS";
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  StepSeconds given;
  char rest = 0;
  if (std::sscanf(text, "%lf,%lf%c", &given.piloted, &given.later, &rest) != 2 || !(given.piloted > 0) ||
      !(given.later > 0))
    throw ConfigError(fmt::format("{}: expected two numbers above 0, such as 0.2,0.1, got {}", variable, text));
  return given;
}

PilotTimes time_pilot(const RunConfig& config, const DataSource& data) {
  if (const auto given = given_step_seconds()) return {given->piloted, 0, 0};
  const PilotTimes times = times_of(config, data, for_plan, true);
  log_debug(
      fmt::format("timed for train.minutes: {:.4f} s a step, {:.3f} s an evaluation", times.step, times.evaluation));
  return times;
}

std::optional<StepTimes> time_precisions(RunConfig config, const DataSource& data) {
  if (given_step_seconds()) return std::nullopt;
  const StopPoll poll = [] { return StopSignals::received() != 0; };
  const StopScope heeded(&poll);
  try {
    const auto seconds = [&](Precision precision) {
      config.train.precision = precision;
      return times_of(config, data, for_precision, false).step;
    };
    const double float32 = seconds(Precision::float32);
    return StepTimes{float32, seconds(Precision::bf16)};
  } catch (const Stopped&) {
    return std::nullopt;
  }
}

}  // namespace capstan
