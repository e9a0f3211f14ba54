// Makes the model of a run and checks the patterns of train.freeze and train.lr_scale. tests/run/test_run.cpp.
#include "run/setup/run_model.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "core/strings/nearest.hpp"
#include "core/strings/pattern.hpp"
#include "core/strings/strings.hpp"
#include "train/checkpoints/checkpoint_files.hpp"

namespace capstan {
namespace {

/// Why a pattern of names is of no use; `chosen` says which parameters it may be meant for.
template <class Chosen>
std::string pattern_problem(const ParamStore& params, const std::string& pattern, const Chosen& chosen) {
  std::vector<std::string> names;
  bool any = false;
  for (const Param& param : params.params()) {
    if (matches(param.name, pattern)) {
      any = true;
      if (chosen(param)) return "";
    }
    names.push_back(param.name);
  }
  if (any) return fmt::format("all parameters that match {} are frozen", pattern);
  for (const auto& [alias, target] : params.aliases())
    if (matches(alias, pattern)) return fmt::format("{} is stored as {}: name that one", alias, target);
  const std::string meant = nearest(pattern, names);
  return fmt::format("no parameter matches {}{}; the model has {}", pattern,
                     meant.empty() ? "" : fmt::format(" (the nearest is {})", meant), join_first(names));
}

/// Throws ConfigError for a pattern of train.freeze or train.lr_scale that matches nothing, and if nothing is trained.
void check_rules(const ParamStore& params) {
  ProblemText problems("train");
  const auto check_pattern = [&](const std::string& key, const std::string& pattern, const auto& chosen) {
    if (const std::string problem = pattern_problem(params, pattern, chosen); !problem.empty())
      problems.add(key, problem);
  };
  const ParamRules& rules = params.rules();
  for (size_t i = 0; i < rules.freeze.size(); ++i)
    check_pattern(fmt::format("freeze.{}", i), rules.freeze[i], [](const Param&) { return true; });
  for (size_t i = 0; i < rules.lr_scale.size(); ++i)
    check_pattern(fmt::format("lr_scale.{}.match", i), rules.lr_scale[i].match,
                  [](const Param& param) { return !param.frozen; });
  if (std::all_of(params.params().begin(), params.params().end(), [](const Param& param) { return param.frozen; }))
    problems.add("freeze", "all parameters are frozen: nothing would be trained");
  if (!problems.text().empty()) throw ConfigError(problems.text());
}

}  // namespace

RunModel::RunModel(const RunConfig& config, int64_t vocabulary, int64_t classes, ParamMemory memory)
    : params_(memory, {config.train.freeze, config.train.lr_scale, config.train.layer_decay}),
      name_(config.name),
      type_(type_of(config.model)),
      predicts_(facts_of(config.model).predicts),
      command_(facts_of(config.model).command) {
  const Scope scope(params_, static_cast<uint64_t>(config.seed));
  const SourceFacts data = facts_of(config.data);
  const ModelSizes sizes{vocabulary, data.added_tokens, classes, data.multi_label()};
  model_ = std::visit([&](const auto& model) { return make_model(model, scope, sizes); }, config.model);
  if (sizes.multi_label && facts_of(config.model).classifies() && model_->label_columns() == 0)
    throw ConfigError(fmt::format("data.multi_label: a {} predicts one class per text", type_));
  if (!facts_of(config.model).is_solved) check_rules(params_);
  params_.finalize();
}

RunModel::RunModel(const RunConfig& config, int64_t vocabulary, int64_t classes, const SafetensorsFile& weights,
                   ParamMemory memory)
    : RunModel(config, vocabulary, classes, facts_of(config.model).reads_texts ? ParamMemory::none : memory) {
  if (facts_of(config.model).reads_texts)
    model_->take_tables(weights);
  else
    load_model(weights, params_);
}

const Model& RunModel::that_predicts(Predicts what) const {
  if (predicts_ == what) {
    const Stack* const stack = what == Predicts::next_token ? model_->find_stack() : nullptr;
    const std::vector<std::string> slow = stack != nullptr ? stack->forward_only_mixers() : std::vector<std::string>{};
    if (!slow.empty() && !said_slow_.exchange(true))
      log_info(
          fmt::format("{}: each token that is written reads all others again, because only forward() is written; "
                      "step() and prefill() make it fast (docs/adding.md)",
                      join(slow)));
    return *model_;
  }
  throw Error(fmt::format("the run {} is a {}, but this needs a {}; for a {}, use {}", name_, type_, model_types(what),
                          type_, command_));
}

const Stack& RunModel::stack() const {
  if (const Stack* const stack = model_->find_stack()) return *stack;
  throw Error(fmt::format("a {} has no blocks, and no vectors of texts: train a text-classifier for them", type_));
}

void RunModel::prepare(const std::vector<int64_t>& class_counts, int64_t examples) {
  model_->prepare({class_counts, examples, &params_});
}

int64_t model_vocabulary(const RunConfig& config, const Tokenizer& tokenizer) {
  return tokenizer.vocabulary_size() + facts_of(config.data).added_tokens;
}

}  // namespace capstan
