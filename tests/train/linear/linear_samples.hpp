// Texts about topics, and linear classifiers of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/stop.hpp"
#include "data/tokenizers/tokenizer.hpp"
#include "models/linear_classifier.hpp"
#include "tests/train/support.hpp"
#include "train/linear/fit_linear.hpp"

namespace capstan::testing {

struct Text {
  std::string text;
  int32_t label;
};

/// About two topics; some texts have words of both, and a few labels are wrong.
inline std::vector<Text> sample_texts(int count, int32_t classes = 2) {
  const std::vector<std::vector<std::string>> words{
      {"goal", "team", "match", "league"}, {"stock", "bank", "market", "shares"}, {"planet", "star", "orbit", "comet"}};
  const std::vector<std::string> common{"the", "of", "a", "today", "said"};
  RandomStream random(random_key(5, "sample texts"));
  std::vector<Text> texts;
  for (int i = 0; i < count; ++i) {
    const auto label = static_cast<int32_t>(random.below(static_cast<uint64_t>(classes)));
    std::string text;
    for (uint64_t w = 0; w < 4 + random.below(6); ++w) {
      const auto& pool = random.uniform() < 0.5   ? common
                         : random.uniform() < 0.2 ? words[random.below(static_cast<uint64_t>(classes))]
                                                  : words[static_cast<size_t>(label)];
      text += (text.empty() ? "" : " ") + pool[random.below(pool.size())];
    }
    texts.push_back({text, random.uniform() < 0.05 ? (label + 1) % classes : label});
  }
  return texts;
}

struct Samples {
  ExampleSet examples;
  ByteTokenizer tokenizer;
  explicit Samples(const std::vector<Text>& texts) {
    for (const Text& text : texts) examples.add(tokenizer.encode(text.text), text.label);
  }
  LabelledTexts texts() const { return {examples, tokenizer}; }
};

inline LinearClassifierConfig linear_config(int64_t buckets = 1024) {
  LinearClassifierConfig config;
  config.words = {1, 2};
  config.characters = {3};
  config.buckets = buckets;
  config.min_texts = 2;
  return config;
}

/// Of texts that need not outlive it, unless rows are made again.
inline NgramRows rows_of(const std::vector<Text>& texts, int64_t classes, const LinearClassifierConfig& config,
                         std::shared_ptr<const BaseClassifier> base = nullptr) {
  return {Samples(texts).texts(), config, classes, std::move(base)};
}

/// Budgets by which few texts, too, are learnt by AdaGrad, over rows that are kept in memory or made again.
constexpr RowBudget kept_for_adagrad{1, int64_t{1} << 30}, made_again{1, 1};

/// How the weights of a classifier are found.
struct Solver {
  const char* name;
  RowBudget budget;
};
constexpr Solver all_solvers[] = {{"solved for", {}}, {"AdaGrad", kept_for_adagrad}, {"rows made again", made_again}};

/// Stops at the stop point after so many.
struct StopAfter {
  explicit StopAfter(int64_t count) : allowed(count) {}
  const int64_t allowed;
  std::atomic<int64_t> asked{0};
  const StopPoll poll = [this] { return ++asked > allowed; };
};
constexpr int64_t no_end = 1'000'000'000;

/// A model's parameters, as LinearClassifier makes them.
struct Solution {
  ParamStore store;
  std::unique_ptr<LinearClassifier> linear;
  LinearFit fit;

  Solution(const NgramRows& rows, uint64_t seed) {
    linear = std::make_unique<LinearClassifier>(Scope(store, seed), rows.config(), rows.classes(), rows.multi_label());
    store.finalize();
    fit = fit_linear(rows, store, seed);
  }
  int32_t predict(const std::string& text) const {
    const Array logits = linear->text_logits({text});
    return static_cast<int32_t>(std::max_element(logits.data(), logits.data() + logits.size()) - logits.data());
  }
  double probability(const std::string& text, int64_t label) const {
    return static_cast<double>(linear->probabilities(Var(linear->text_logits({text}))).data()[label]);
  }
  double accuracy(const std::vector<Text>& texts) const {
    double correct = 0;
    for (const Text& text : texts) correct += predict(text.text) == text.label ? 1 : 0;
    return correct / static_cast<double>(texts.size());
  }
  std::vector<real> values() const { return {store.values(), store.values() + store.flat_size()}; }
  std::vector<float> values(const std::string& name) const {
    const Param& param = store.find(name);
    return {store.values() + param.offset, store.values() + param.offset + param.var.value().size()};
  }
  std::shared_ptr<const BaseClassifier> as_base() const {
    return std::make_shared<BaseClassifier>(BaseClassifier{linear->config(), linear->classes(), values("linear.scale"),
                                                           values("linear.weight"), values("linear.bias")});
  }
};

inline std::vector<int64_t> all_rows(const NgramRows& rows) {
  std::vector<int64_t> all;
  for (int64_t row = 0; row < rows.rows(); ++row) all.push_back(row);
  return all;
}

}  // namespace capstan::testing
