#include "train/loop/run_length.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace capstan {
namespace {

int64_t steps_of_epoch(const BatchSource& source, int64_t epoch, int64_t accumulate) {
  return (source.batches_per_epoch(epoch) + accumulate - 1) / accumulate;
}

}  // namespace

int64_t total_steps(const BatchSource& source, const TrainConfig& config) {
  if (config.epochs == 0) return config.steps;
  int64_t total = 0;
  for (int64_t epoch = 0; epoch < config.epochs && (config.steps == 0 || total < config.steps); ++epoch)
    total += steps_of_epoch(source, epoch, config.accumulate);
  return config.steps > 0 ? std::min(total, config.steps) : total;
}

std::optional<std::string> fresh_tables_warning(const BatchSource& source, const TrainConfig& config) {
  const int64_t total = total_steps(source, config);
  int64_t epoch = 0, before = 0, of_this = steps_of_epoch(source, 0, config.accumulate);
  while (of_this > 0 && before + of_this < total) {
    before += of_this;
    of_this = steps_of_epoch(source, ++epoch, config.accumulate);
  }
  if (epoch == 0 || 2 * (total - before) > of_this) return {};
  return fmt::format(
      "model.ngram_embedding.fresh_each_epoch: the last epoch has only {} of its {} steps, too few to refill an "
      "n-gram table: end the run with an epoch, with train.epochs: {} and train.steps: 0, or with train.steps: {}",
      total - before, of_this, epoch, before);
}

}  // namespace capstan
