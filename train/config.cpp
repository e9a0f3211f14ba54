#include "train/config.hpp"

#include "core/error.hpp"

namespace capstan {

void validate(const TrainConfig& config) {
  if (config.steps == 0 && config.epochs == 0 && config.max_minutes == 0 && config.patience == 0)
    throw ConfigError(
        "train: training would never end: set train.steps, train.epochs, train.max_minutes or train.patience");
  if (config.patience > 0 && config.valid_every == 0)
    throw ConfigError("train.patience: needs evaluations: set train.valid_every");
  // Throws where the schedule needs an end that is not known; an epoch counts as one.
  Schedule(config.schedule, config.lr, config.steps + config.epochs);
}

}  // namespace capstan
