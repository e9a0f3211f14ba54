// Evaluates a language model that learns from what it has scored, or texts by it, and chooses the rule with the least
// loss. tests/train/test_adaptive.cpp, tests/run/test_adapted.cpp and tests/cli/runs/test_eval.cpp.
#include "run/predictions/adapted.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/io/log.hpp"

namespace capstan {
namespace {

/// The rules of a cache that are tried on the validation data: every sharpness with every weight.
std::vector<CacheRule> rules_to_try() {
  std::vector<CacheRule> rules;
  for (const double sharpness : {5.0, 10.0, 15.0, 20.0, 30.0, 45.0})
    for (const double weight : {0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5}) rules.push_back({sharpness, weight});
  return rules;
}

/// The index of the rule with the least loss.
size_t best_of(const AdaptiveEvaluation& tried) {
  return static_cast<size_t>(std::min_element(tried.loss_sums.begin(), tried.loss_sums.end()) -
                             tried.loss_sums.begin());
}

/// What the options and the run ask of the evaluation, without the cache's rules. Throws Error where they do not fit.
AdaptiveOptions checked_options(const SavedRun& run, const DataSource& data, const AdaptOptions& options,
                                bool needs_valid) {
  run.model->that_predicts(Predicts::next_token);
  const auto is_share = [](double value) { return value >= 0 && value <= 1; };
  if (options.cache < 0 || options.cache > max_cached_tokens || !is_share(options.rate) || !is_share(options.decay))
    throw ConfigError(
        fmt::format("--cache: at most {} tokens; --adapt and --adapt-decay: numbers from 0 to 1", max_cached_tokens));
  if (options.rate > 0 && !data.has(Split::train))
    throw Error("--adapt: the sizes of gradients are measured on training data, which are missing: give data.train");
  if (options.cache > 0 && needs_valid && !data.has(Split::valid))
    throw Error(
        "--cache: its rule is chosen on validation data, of which the run has none: give --set data.valid=[FILE]");
  if (options.cache > 0 && facts_of(run.config.model).reads_sources)
    throw Error(
        "--cache: is for models that read from left to right; this one reads sources in both directions "
        "(model.prefix)");
  AdaptiveOptions adaptive;
  adaptive.cache = options.cache;
  adaptive.rate = options.rate;
  adaptive.decay = options.decay;
  return adaptive;
}

/// The run's model, or where the weights are to learn a copy of it.
std::shared_ptr<RunModel> model_that_learns(const SavedRun& run, double rate) {
  if (rate == 0) return run.model;
  return open_run(std::filesystem::path(run.weights).parent_path(), ParamMemory::allocated).model;
}

const BatchSource* training_texts(const DataSource& data, double rate) { return rate > 0 ? &data.training() : nullptr; }

AdaptiveEvaluation evaluate_copy(const SavedRun& run, const DataSource& data, Split split,
                                 const AdaptiveOptions& options) {
  const std::shared_ptr<RunModel> copy = model_that_learns(run, options.rate);
  return evaluate_adaptive(copy->model(), copy->params(), *data.evaluation(split), training_texts(data, options.rate),
                           options, log_info);
}

/// Throws Error for a loss of more than a hundred nats per token, or one that is not finite: the weights have run away.
/// `where`: the text at which they did, with a colon.
void check_rate(double rate, double loss_sum, int64_t targets, const std::string& where = "") {
  constexpr double max_loss = 100;
  const double loss = loss_sum / static_cast<double>(std::max<int64_t>(targets, 1));
  if (rate > 0 && !(loss <= max_loss))
    throw Error(fmt::format("{}--adapt: at a rate of {:g} the loss is {:.3g} nats per token: give a smaller one", where,
                            rate, loss));
}

/// Tries the rules of a cache on the validation data and leaves the best in `options`. Returns what it gave there.
AdaptedFigures choose_rule(const SavedRun& run, const DataSource& data, AdaptiveOptions& options, const char* remark) {
  options.rules = rules_to_try();
  const AdaptiveEvaluation tried = evaluate_copy(run, data, Split::valid, options);
  const CacheRule best = options.rules[best_of(tried)];
  check_rate(options.rate, tried.loss_sums[best_of(tried)], tried.targets);
  log_info(fmt::format("cache: sharpness {} and weight {}, chosen on the validation data{}", best.sharpness,
                       best.weight, remark));
  options.rules = {best};
  return {tried.targets, tried.loss_sums[best_of(tried)], best};
}

}  // namespace

AdaptedFigures evaluate_adapted(const SavedRun& run, const DataSource& data, Split split, const AdaptOptions& options) {
  AdaptiveOptions adaptive = checked_options(run, data, options, split != Split::valid);
  AdaptedFigures figures;
  if (options.cache > 0) {
    const bool same = split == Split::valid;
    figures = choose_rule(run, data, adaptive, same ? ", which are those evaluated: the figure flatters" : "");
    if (same) return figures;
  }
  const Stopwatch watch;
  const AdaptiveEvaluation result = evaluate_copy(run, data, split, adaptive);
  figures.targets = result.targets;
  figures.loss_sum = result.loss_sums.front();
  check_rate(options.rate, figures.loss_sum, figures.targets);
  figures.seconds = watch.seconds();
  return figures;
}

AdaptedScorer::AdaptedScorer(const SavedRun& run, const AdaptOptions& options) : run_(run), options_(options) {
  run.model->that_predicts(Predicts::next_token);
  const auto data = open_saved_data(run, options.cache > 0 ? Split::valid : Split::train);
  AdaptiveOptions adaptive = checked_options(run, *data, options, true);
  if (options.cache > 0) choose_rule(run, *data, adaptive, "");
  run_.model = model_that_learns(run, options.rate);
  scorer_ = std::make_unique<AdaptiveScorer>(run_.model->model(), run_.model->params(),
                                             training_texts(*data, options.rate), adaptive, log_info);
}

TextScore AdaptedScorer::score(const InputText& text) {
  const SourceFacts facts = facts_of(run_.config.data);
  ScoreWindows windows;
  windows.length = run_.model->position_limit();
  if (!facts.has_pairs && facts.longest > 0) {
    windows.length = facts.longest;
    windows.overlap = facts.overlap;
  }
  windows.loss = [&](const Batch& window) {
    AdaptiveEvaluation sums;
    scorer_->score(window, sums);
    check_rate(options_.rate, sums.loss_sums.front(), sums.targets, text.place + ": ");
    return sums.loss_sums.front();
  };
  return score_of(run_, text, windows);
}

}  // namespace capstan
