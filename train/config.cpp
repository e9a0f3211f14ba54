#include "train/config.hpp"

#include "core/error.hpp"

namespace capstan {

void validate(const TrainConfig& config, Problems& problems) {
  if (config.steps == 0 && config.epochs == 0 && config.max_minutes == 0 && config.patience == 0)
    problems.add("", "training would never end: set train.steps, train.epochs, train.max_minutes or train.patience");
  if (config.patience > 0 && config.valid_every == 0)
    problems.add("patience", "needs evaluations: set train.valid_every");
  const std::string schedule = schedule_problem(config.schedule, config.steps + config.epochs > 0);
  if (!schedule.empty()) problems.add("schedule", schedule);
}

void check_config(const TrainConfig& config) {
  ProblemText problems("train");
  validate(config, problems);
  if (!problems.text().empty()) throw ConfigError(problems.text());
}

}  // namespace capstan
