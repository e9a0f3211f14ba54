// Frozen parameters: any of them may be constant, alone or with others, and all other gradients stay what they were.
#include <map>

#include "tests/models/samples.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

using Gradients = std::map<std::string, Array>;

template <class Model>
struct Case {
  std::function<std::unique_ptr<Model>(const Scope&)> make;
  Batch batch;
};

/// Gradients of the parameters that are trained.
template <class Model>
Gradients gradients(const Case<Model>& of, const ParamRules& rules) {
  ParamStore store(ParamMemory::allocated, rules);
  const auto model = of.make(Scope(store, 1));
  redraw(store);
  store.finalize();
  const std::vector<real> before(store.values(), store.values() + store.flat_size());
  TapeScope scope;
  const TaskLoss loss = model->loss(of.batch, context_of(of.batch, true));
  if (loss.sum.needs_grad()) scope.backward(loss.sum);
  Gradients result;
  for (const Param& param : store.params()) {
    CHECK(param.frozen == is_frozen(rules, param.name));
    CHECK(param.var.needs_grad() == !param.frozen);
    if (!param.frozen) result[param.name] = param.var.grad().clone();
  }
  CHECK(std::equal(before.begin(), before.end(), store.values()));
  return result;
}

template <class Model>
void check_any_may_freeze(const Case<Model>& of) {
  const Gradients whole = gradients(of, {});
  std::vector<std::vector<std::string>> sets = {
      {"*.weight"}, {"*.bias", "*.gain"}, {"embed.*", "positions.*", "blocks.0.*"}, {"blocks.*"}};
  for (const auto& [name, gradient] : whole) sets.push_back({name});
  for (const std::vector<std::string>& frozen : sets) {
    INFO(frozen.front());
    ParamRules rules;
    rules.freeze = frozen;
    const Gradients rest = gradients(of, rules);
    CHECK(rest.size() < whole.size());
    for (const auto& [name, gradient] : rest) {
      INFO(name);
      CHECK(relative_error(gradient, whole.at(name)) < (sizeof(real) == 4 ? 1e-5 : 1e-12));
    }
  }
}

}  // namespace

TEST_CASE("any parameter may be frozen: it has no gradient, and those of the others do not change") {
  for (const MixerCase& mixer : mixer_cases()) {
    for (const bool recompute : {false, true}) {
      INFO(mixer.name, recompute ? ", recomputed" : "");
      auto language = small<LanguageModelConfig>(mixer.config);
      language.recompute = recompute;
      set_ngrams(language.ngram_embedding, {2}, 50, 4);
      language.tied_output = !recompute;
      check_any_may_freeze<LanguageModel>(
          {[&](const Scope& scope) { return std::make_unique<LanguageModel>(scope, language, vocabulary); },
           next_token_batch(ragged(16), 6)});
      auto classifier = small<TextClassifierConfig>(mixer.config);
      classifier.recompute = recompute;
      classifier.pooling = recompute ? Pooling::attention : Pooling::cls;
      set_ngrams(classifier.ngrams, {1, 2}, 50, 4);
      check_any_may_freeze<TextClassifier>(
          {[&](const Scope& scope) { return std::make_unique<TextClassifier>(scope, classifier, vocabulary, 3); },
           labelled_batch({16, 7, 11}, 7)});
    }
  }
}

TEST_CASE("frozen parameters follow all others and have no place in the gradients") {
  ParamRules rules;
  rules.freeze = {"embed.*", "blocks.0.*", "ngram_embedding.table"};
  rules.lr_scale = {{"blocks.1.mixer.*", 0.5}, {"blocks.*", 2}};
  rules.layer_decay = 0.5;
  ParamStore store(ParamMemory::allocated, rules);
  auto config = small<LanguageModelConfig>(mixer_cases().front().config);
  config.ngram_embedding.orders = {2};
  config.ngram_embedding.buckets = 50;
  const LanguageModel model(Scope(store, 1), config, vocabulary);
  store.finalize();
  CHECK(store.trainable_size() < store.flat_size());
  CHECK(store.dense_size() == store.trainable_size());  // the only table that is updated by rows is frozen
  CHECK(store.grad_block().dense().size() == store.dense_size());
  CHECK(store.grad_block().tables().empty());
  for (const Param& param : store.params()) {
    INFO(param.name);
    CHECK((param.offset >= store.trainable_size()) == param.frozen);
    const double expected = param.name.find("blocks.1.mixer.") == 0 ? 0.5 * 0.5
                            : param.name.find("blocks.1.") == 0     ? 2 * 0.5
                            : param.name.find("blocks.0.") == 0     ? 2 * 0.25
                            : param.name.find("final_norm") == 0    ? 1
                                                                    : 0.125;
    CHECK(param.lr_factor == expected);
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
