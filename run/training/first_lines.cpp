// Lines about machine, data and model. tests/cli/training/test_precision.cpp and tests/cli/inputs/test_log.cpp.
#include "run/training/first_lines.hpp"

#include <fmt/core.h>

#include "core/machine/kernel_levels.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_memory.hpp"
#include "run/yaml/config_diff.hpp"

namespace capstan {
namespace {

/// This process, its threads, instruction set and BLAS.
std::string machine_line() {
  const BlasInfo blas = blas_info();
  return fmt::format("machine: {} threads, SIMD {}, {} ({} kernels, {} threading), float products by {}", threads(),
                     kernel_level(), blas.version, blas.core, blas.threading, blas.float_products);
}

/// That the CPU supports faster kernels than those that BLAS uses; empty where it does not.
std::string blas_warning() {
  const std::string better = better_blas_core();
  if (better.empty()) return "";
  return fmt::format(
      "OpenBLAS uses its {} kernels although this CPU supports {}, which may be several times faster; if "
      "OPENBLAS_CORETYPE is set, unset it",
      blas_info().core, better);
}

/// Keys that are set but have no effect on a model that is solved for. A key of `train` with an effect on such models
/// must be copied here.
std::vector<std::string> keys_of_steps(const RunConfig& config) {
  RunConfig without = config;
  TrainConfig& used = without.train = TrainConfig();
  used.steps = config.train.steps;
  used.epochs = config.train.epochs;
  used.init_from = config.train.init_from;
  used.monitor = config.train.monitor;
  used.monitor_class = config.train.monitor_class;
  used.costs = config.train.costs;
  used.progress = config.train.progress;
  used.memory = config.train.memory;
  used.kernels = config.train.kernels;  // bits are portable with either value, so that a user may ask for it
  std::vector<std::string> keys;
  for (const ConfigDifference& key : diff_configs(config, without)) keys.push_back(key.path);
  return keys;
}

}  // namespace

std::vector<std::string> first_warnings(const RunConfig& config, const DataSource& data) {
  const ClassWeights* const weights = facts_of(config.model).class_weights;
  const bool heeded = (weights != nullptr && !std::holds_alternative<EqualClasses>(*weights)) ||
                      metric_of(config.train.monitor).of != Metric::Of::all;
  std::vector<std::string> lines;
  if (const std::string warning = blas_warning(); !warning.empty()) lines.push_back(warning);
  for (const DataWarning& warning : data.warnings())
    if (!heeded || warning.check != "balance") lines.push_back("data: " + warning.message);
  if (facts_of(config.model).is_solved)
    if (const std::vector<std::string> keys = keys_of_steps(config); !keys.empty())
      lines.push_back(fmt::format("{}: without effect on a {}, which is not trained in steps; remove {}",
                                  join_first(keys), type_of(config.model), keys.size() == 1 ? "it" : "them"));
  return lines;
}

std::vector<std::string> first_lines(const RunConfig& config, const DataSource& data, const RunModel& model) {
  std::vector<std::string> lines{machine_line()};
  for (const std::string& line : data.description())  // n-grams are made of texts, so that tokens do not matter
    if (!facts_of(config.model).is_solved || !starts_with(line, "tokenizer: ")) lines.push_back(line);
  if (facts_of(config.model).is_solved) return lines;
  const SourceFacts facts = facts_of(config.data);
  const bool fixed_length = !facts.has_labels && facts.longest > 0;
  const ModelSummary summary = model.summary(fixed_length ? facts.longest : model.position_limit().value_or(512));
  lines.push_back(fmt::format("model: {} of {}, {:.3g} MFLOP per token in training{}", type_of(config.model),
                              parameters_text(model.params()), summary.training_flops() / 1e6,
                              summary.frozen > 0 ? fmt::format("; {} parameters are frozen", summary.frozen) : ""));
  if (const Stack* const stack = model.model().find_stack(); stack != nullptr && stack->config().layers.empty())
    lines.emplace_back("model.layers: none: no token sees another, but for n-grams");
  return lines;
}

}  // namespace capstan
