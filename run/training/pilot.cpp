// A model is trained at a thousandth of the rate. Its first steps take longer, since they touch new memory, and are not
// counted. Times are medians, because other programs on the machine make some steps slow.
#include "run/training/pilot.hpp"

#include <algorithm>
#include <vector>

#include "core/base/median.hpp"
#include "core/base/stop.hpp"
#include "core/io/log.hpp"
#include "core/machine/memory_limit.hpp"
#include "core/machine/parallel.hpp"
#include "run/setup/run_model.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/loop/signals.hpp"
#include "train/steps/training_step.hpp"

namespace capstan {
namespace {

constexpr int max_steps = 200;

/// A model that is trained on trial.
class TrialModel {
 public:
  TrialModel(const RunConfig& config, const DataSource& data)
      : data_(data),
        config_(config.train),
        model_(config, model_vocabulary(config, data.tokenizer()), static_cast<int64_t>(data.classes().size())),
        step_(model_.model(), prepared(), data.training(), config_) {}
  TrialModel(const TrialModel&) = delete;
  TrialModel& operator=(const TrialModel&) = delete;

  /// Seconds of a step.
  double step(Precision precision) {
    config_.precision = precision;
    const Stopwatch watch;
    step_.run(state_, config_.lr * 1e-3, [] { return StopStatus{}; });
    return watch.seconds();
  }

  /// Seconds of an evaluation on the validation data, in proportion to those of a few batches.
  double evaluation() const {
    if (!data_.has(Split::valid)) return 0;
    const std::unique_ptr<BatchSource> valid = data_.validation();
    const int64_t batches = valid->batches_per_epoch(0);
    const int64_t tried = std::min<int64_t>(batches, 4 * threads());
    const SomeBatches first_batches(*valid, {tried, batches - tried}, 0);
    const Stopwatch watch;
    evaluate(model_.model(), first_batches, config_.micro_batch_tokens);
    return watch.seconds() * static_cast<double>(batches) / static_cast<double>(std::max<int64_t>(tried, 1));
  }

  /// An estimate of the seconds for a checkpoint.
  double save() { return seconds_to_save(step_.parts(state_)); }

 private:
  ParamStore& prepared() {
    model_.prepare(data_.class_counts(), data_.training().examples_per_epoch());
    return model_.params();
  }

  const DataSource& data_;
  TrainConfig config_;
  RunModel model_;
  LocalStep step_;
  RunState state_;
};

/// The seconds of a step in each precision, which take turns. The first `not_counted` rounds are left out, and no round
/// is begun after `seconds`, but for a few.
std::vector<double> seconds_of_steps(TrialModel& trial, const std::vector<Precision>& precisions, int not_counted,
                                     double seconds) {
  constexpr int min_counted = 3;
  std::vector<std::vector<double>> counted(precisions.size());
  const Stopwatch since_first;
  for (int i = 0; i < max_steps && (i < not_counted + min_counted || since_first.seconds() < seconds); ++i)
    for (size_t p = 0; p < precisions.size(); ++p) {
      const double took = trial.step(precisions[p]);
      if (i >= not_counted) counted[p].push_back(took);
    }
  std::vector<double> medians;
  for (std::vector<double>& of_precision : counted) medians.push_back(median(std::move(of_precision)));
  return medians;
}

PilotTimes pilot_times(const RunConfig& config, const DataSource& data, double seconds) {
  TrialModel trial(config, data);
  const double step = seconds_of_steps(trial, {config.train.precision}, 2, seconds).front();
  return {step, trial.evaluation(), trial.save()};
}

PrecisionTimes precision_times(const RunConfig& config, const DataSource& data) {
  constexpr double enough_seconds = 1;
  TrialModel trial(config, data);
  const auto times = seconds_of_steps(trial, {Precision::float32, Precision::bf16}, 1, enough_seconds);
  return {times[0], times[1]};
}

/// The configuration of a process that takes a batch in as many pieces as there are ranks.
RunConfig in_pieces(RunConfig config, const DataSource& data, int ranks) {
  const BatchSource& training = data.training();
  if (ranks == 1 || training.batches_per_epoch(0) == 0) return config;
  const BatchExtent batch = training.extent(0, 0);
  const int64_t part = std::max<int64_t>(1, batch.rows * batch.columns / ranks);
  int64_t& piece = config.train.micro_batch_tokens;
  piece = piece > 0 ? std::min(piece, part) : part;
  return config;
}

/// What `trial` returns, unless a signal comes. Its memory is given back.
template <class Trial>
auto on_trial(const Trial& trial) {
  const StopPoll poll = [] { return StopSignals::received() != 0; };
  const StopScope heeded(&poll);
  const auto times = trial();
  live_memory();
  return times;
}

}  // namespace

PilotTimes time_pilot(const RunConfig& config, const DataSource& data, double seconds) {
  const PilotTimes times = on_trial([&] { return pilot_times(config, data, seconds); });
  log_debug(
      fmt::format("timed for train.minutes: {:.4f} s a step, {:.3f} s an evaluation", times.step, times.evaluation));
  return times;
}

PrecisionTimes time_precisions(const RunConfig& config, const DataSource& data, int ranks) {
  return on_trial([&] { return precision_times(in_pieces(config, data, ranks), data); });
}

}  // namespace capstan
