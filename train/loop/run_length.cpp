// Counts the steps of a run by its epochs, which may differ in length. Only the first hundred are counted one by one,
// so that any configuration takes a bounded time: tests/train/test_run_length.cpp.
#include "train/loop/run_length.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace capstan {
namespace {

/// Epochs whose batches are counted one by one: counting may mean planning the whole epoch.
constexpr int64_t counted_epochs = 100;
/// A number of steps that no run reaches. Sums with it stay within int64_t.
constexpr int64_t endless = int64_t{1} << 61;

/// Steps of an epoch, of `accumulate` batches each; the last one may have fewer.
int64_t steps_of_epoch(const BatchSource& source, int64_t epoch, int64_t accumulate) {
  const int64_t batches = source.batches_per_epoch(epoch);
  return batches / accumulate + (batches % accumulate != 0 ? 1 : 0);
}

/// An epoch, and the steps in front of it.
struct EpochStart {
  int64_t epoch = 0, before = 0, steps = 0;  // before: steps of all earlier epochs; steps: of this one
};

/// The epoch in which step `step` is, or epoch `epoch` if that comes first. All epochs after the counted ones are taken
/// to be as long as the last of these; their number makes no difference to the time.
EpochStart find_epoch(const BatchSource& source, int64_t accumulate, int64_t step, int64_t epoch) {
  EpochStart at{0, 0, steps_of_epoch(source, 0, accumulate)};
  while (at.epoch < epoch && at.steps > 0 && at.before + at.steps <= step) {
    if (at.epoch + 1 < counted_epochs) {
      at.before += at.steps;
      at.steps = steps_of_epoch(source, ++at.epoch, accumulate);
      continue;
    }
    const int64_t whole = std::min({epoch - at.epoch, (step - at.before) / at.steps, endless / at.steps});
    return {at.epoch + whole, at.before + whole * at.steps, at.steps};
  }
  return at;
}

}  // namespace

int64_t total_steps(const BatchSource& source, const TrainConfig& config) {
  if (config.epochs == 0) return config.steps;
  const int64_t limit = config.steps > 0 ? config.steps : endless;
  const EpochStart end = find_epoch(source, config.accumulate, limit, config.epochs);
  return end.epoch == config.epochs ? end.before : limit;
}

int64_t evaluation_interval(const BatchSource& train, const BatchSource* valid, const TrainConfig& config) {
  if (config.valid_every) return *config.valid_every;
  constexpr double training_per_evaluation = 10, usual = 500;
  const double examples = valid != nullptr ? static_cast<double>(valid->examples_per_epoch()) : 0;
  const double epochs =
      training_per_evaluation * examples / static_cast<double>(std::max<int64_t>(1, train.examples_per_epoch()));
  const double steps = std::ceil(epochs * static_cast<double>(steps_of_epoch(train, 0, config.accumulate)));
  const auto least = static_cast<int64_t>(std::clamp(steps, usual, 1e15));
  const int64_t total = total_steps(train, config), times = std::max<int64_t>(1, total / least);
  return total == 0 ? least : (total + times - 1) / times;
}

bool worth_beginning(int64_t epoch, int64_t steps, int64_t all) {
  return epoch == 0 || steps == all || (epoch == 1 && steps > all / 2);
}

std::optional<std::string> fresh_tables_warning(const BatchSource& source, const TrainConfig& config) {
  const int64_t total = total_steps(source, config);
  if (total == 0) return {};
  const auto [epoch, before, epoch_steps] = find_epoch(source, config.accumulate, total - 1, endless);
  const int64_t last_steps = total - before;
  if (worth_beginning(epoch, last_steps, epoch_steps)) return {};
  return fmt::format(
      "model.ngram_embedding.fresh_each_epoch: the last epoch has only {} of its {} steps, too few to refill an "
      "n-gram table: end the run with an epoch, with train.epochs: {} and train.steps: 0, or with train.steps: {}",
      last_steps, epoch_steps, epoch, before);
}

std::optional<ReachedLimit> reached_limit(const TrainConfig& config, const RunState& state, double seconds) {
  if (config.steps > 0 && state.step >= config.steps)
    return ReachedLimit{fmt::format("all {} steps are done", config.steps), "train.steps"};
  if (config.epochs > 0 && state.epoch >= config.epochs)
    return ReachedLimit{fmt::format("all {} epochs are done", config.epochs), "train.epochs"};
  if (config.patience > 0 && state.stalled >= config.patience)
    return ReachedLimit{fmt::format("no better validation {} in {} evaluations", config.monitor, state.stalled),
                        "train.patience"};
  if (config.max_minutes > 0 && seconds >= 60 * config.max_minutes)
    return ReachedLimit{fmt::format("the time limit of {} minutes is reached", config.max_minutes),
                        "train.max_minutes"};
  return std::nullopt;
}

bool has_ended(const TrainConfig& config, const RunState& state) {
  return reached_limit(config, state, state.seconds) && (!state.validates || state.validated_step == state.step);
}

}  // namespace capstan
