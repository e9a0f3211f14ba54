// Checks the `train:` part of a configuration where several keys must fit together, or where the machine must have bf16
// or portable kernels. Problems are collected, so that one error names all: tests/run/yaml/test_config_errors.cpp.
#include "train/configuration/train_config.hpp"

#include <cstdlib>
#include <cstring>

#include "core/base/error.hpp"
#include "core/products/gemm_backend.hpp"

namespace capstan {
namespace {

void check_init(const TrainConfig& config, Problems& problems) {
  if (config.init_from.empty() && !config.init_skip.empty())
    problems.add("init_skip", "needs train.init_from: the weights to start from");
}

}  // namespace

void validate(const TrainConfig& config, Problems& problems) {
  if (config.steps == 0 && config.epochs == 0 && config.minutes == 0 && config.max_minutes == 0 && config.patience == 0)
    problems.add(
        "",
        "training would never end: set train.steps, train.epochs, train.minutes, train.max_minutes or train.patience");
  if (config.patience > 0 && config.valid_every == 0)
    problems.add("patience", "needs evaluations: set train.valid_every");
  check_init(config, problems);
  const std::string schedule =
      schedule_problem(config.schedule, config.steps + config.epochs > 0 || config.minutes > 0);
  if (!schedule.empty()) problems.add("schedule", schedule);
}

std::string precision_obstacle(const TrainConfig& config) {
  if (config.precision != Precision::bf16 || config.kernels == KernelChoice::portable) return "";
  const std::string obstacle = bf16_obstacle();
  const char* const wish = std::getenv("CAPSTAN_BF16");
  if (obstacle.empty() || (wish != nullptr && std::strcmp(wish, "emulate") == 0)) return "";
  return fmt::format(
      "bf16 is not available: {} (CAPSTAN_BF16=emulate in the environment emulates its rounding, without its speed)",
      obstacle);
}

void add_machine_problems(const TrainConfig& config, const std::string& section, Problems& problems) {
  if (const std::string obstacle = precision_obstacle(config); !obstacle.empty())
    problems.add(section + "precision", obstacle);
  if (config.kernels == KernelChoice::portable && !portable_obstacle().empty())
    problems.add(section + "kernels", fmt::format("portable is not available: {}", portable_obstacle()));
}

void use_kernels(const TrainConfig& config) {
  const bool portable = config.kernels == KernelChoice::portable && portable_obstacle().empty();
  set_gemm_backend(portable ? GemmBackend::portable : fastest_gemm_backend());
}

void check_config(const TrainConfig& config) {
  ProblemText problems("train");
  validate(config, problems);
  if (config.minutes > 0 && config.steps == 0)
    problems.add("minutes", "the number of steps has not been chosen yet: set train.steps");
  if (config.precision == Precision::automatic)
    problems.add("precision", "auto has not been replaced yet: set float32 or bf16");
  add_machine_problems(config, "", problems);
  if (!problems.text().empty()) throw ConfigError(problems.text());
}

}  // namespace capstan
