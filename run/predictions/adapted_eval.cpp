// Evaluates a language model that learns from what it has scored, and chooses the rule with the least loss.
// tests/train/test_adaptive.cpp and tests/cli/test_eval.cpp.
#include "run/predictions/adapted_eval.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/io/log.hpp"

namespace capstan {
namespace {

/// The rules of a cache that are tried on the validation data: every sharpness with every weight.
std::vector<CacheRule> rules_to_try() {
  std::vector<CacheRule> rules;
  for (const double sharpness : {5.0, 10.0, 15.0, 20.0, 30.0, 45.0})
    for (const double weight : {0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3}) rules.push_back({sharpness, weight});
  return rules;
}

/// The index of the rule with the least loss.
size_t best_of(const AdaptiveEvaluation& tried) {
  return static_cast<size_t>(std::min_element(tried.loss_sums.begin(), tried.loss_sums.end()) -
                             tried.loss_sums.begin());
}

}  // namespace

AdaptedFigures evaluate_adapted(const SavedRun& run, const DataSource& data, Split split, const AdaptOptions& options) {
  run.model->that_predicts(Predicts::next_token);
  if (options.rate > 0 && !data.has(Split::train))
    throw Error("--adapt: the sizes of gradients are measured on training data, which are missing: give data.train");
  if (options.cache > 0 && split != Split::valid && !data.has(Split::valid))
    throw Error(
        "--cache: its rule is chosen on validation data, of which the run has none: give --set data.valid=[FILE]");
  AdaptiveOptions adaptive;
  adaptive.cache = options.cache;
  adaptive.rate = options.rate;
  adaptive.decay = options.decay;
  const BatchSource* const training = options.rate > 0 ? &data.training() : nullptr;
  const auto evaluate = [&](Split evaluated) {
    const SavedRun copy =
        options.rate > 0 ? open_run(std::filesystem::path(run.weights).parent_path(), ParamMemory::allocated) : run;
    return evaluate_adaptive(copy.model->model(), copy.model->params(), *data.evaluation(evaluated), training, adaptive,
                             log_info);
  };
  AdaptedFigures figures;
  if (options.cache > 0) {
    adaptive.rules = rules_to_try();
    const AdaptiveEvaluation tried = evaluate(Split::valid);
    figures.rule = adaptive.rules[best_of(tried)];
    log_info(fmt::format("cache: sharpness {} and weight {}, chosen on the validation data{}", figures.rule->sharpness,
                         figures.rule->weight,
                         split == Split::valid ? ", which are those evaluated: the figure flatters" : ""));
    adaptive.rules = {*figures.rule};
    if (split == Split::valid) {
      figures.targets = tried.targets;
      figures.loss_sum = tried.loss_sums[best_of(tried)];
      return figures;
    }
  }
  const Stopwatch watch;
  const AdaptiveEvaluation result = evaluate(split);
  figures.targets = result.targets;
  figures.loss_sum = result.loss_sums.front();
  if (!std::isfinite(figures.loss_sum))
    throw Error(fmt::format("--adapt: at a rate of {:g} the loss is not finite: give a smaller one", options.rate));
  figures.seconds = watch.seconds();
  return figures;
}

}  // namespace capstan
