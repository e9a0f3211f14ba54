// A linear classifier that learns from texts as they come.
#include <doctest/doctest.h>

#include <cmath>

#include "core/machine/parallel.hpp"
#include "nn/params/scope.hpp"
#include "tests/train/linear/linear_samples.hpp"
#include "tests/train/support.hpp"
#include "train/linear/online_classifier.hpp"

namespace capstan::testing {
namespace {

void learn_all(OnlineClassifier& online, const std::vector<Text>& texts, size_t batch) {
  for (size_t begin = 0; begin < texts.size(); begin += batch) {
    std::vector<OnlineText> some;
    for (size_t i = begin; i < std::min(begin + batch, texts.size()); ++i)
      some.push_back({texts[i].text, {texts[i].label}});
    online.learn(some);
  }
}

std::vector<std::string> strings_of(const std::vector<Text>& texts) {
  std::vector<std::string> all;
  for (const Text& text : texts) all.push_back(text.text);
  return all;
}

TEST_CASE("online: nearly as accurate as solving for all texts, with the same bits on any number of threads") {
  for (const int32_t classes : {2, 3}) {
    INFO(classes, " classes");
    std::vector<Text> texts = sample_texts(5000, classes);
    const std::vector<Text> unseen(texts.begin() + 4000, texts.end());
    texts.resize(4000);
    const Solution solved(rows_of(texts, classes, linear_config(1 << 14)), 1);
    std::vector<std::vector<std::vector<float>>> found;
    for (const int count : {1, 2}) {
      set_threads(count);
      OnlineClassifier online(linear_config(1 << 14), classes, false);
      learn_all(online, texts, 700);
      CHECK(online.texts() == 4000);
      found.push_back(online.logits(strings_of(unseen)));
    }
    set_threads(0);
    CHECK(found[0] == found[1]);
    int correct = 0;
    for (size_t i = 0; i < unseen.size(); ++i) {
      const std::vector<float>& row = found[0][i];
      correct += std::max_element(row.begin(), row.end()) - row.begin() == unseen[i].label ? 1 : 0;
    }
    CHECK(correct / 1000.0 > solved.accuracy(unseen) - 0.02);
  }
}

TEST_CASE("online: a text with several labels may have weight 0; other weights are numbers of 0 or more") {
  OnlineClassifier online(linear_config(1 << 12), 3, true);
  online.learn({{"one two", {0, 2}, 0}, {"two three", {1}, 1}, {"three four", {}, 0.5}});
  const auto logits = online.logits({"one two three"});
  for (const float logit : logits.front()) CHECK(std::isfinite(logit));
  for (const double weight : {-1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)})
    CHECK_THROWS_AS(online.learn({{"one two", {0}, weight}}), std::invalid_argument);
}

TEST_CASE("online: the parameters say the same, and with what is written beside them learning goes on alike") {
  const TemporaryFolder folder;
  const std::vector<Text> texts = sample_texts(600, 2);
  OnlineClassifier online(linear_config(1 << 12), 2, false);
  learn_all(online, {texts.begin(), texts.begin() + 400}, 100);
  ParamStore params;
  const LinearClassifier classifier(Scope(params, 1), online.config(), 2);
  params.finalize();
  online.fill(params);
  const std::vector<std::string> some = strings_of({texts.begin(), texts.begin() + 20});
  const Array logits = classifier.text_logits(some);
  for (int64_t i = 0; i < 20; ++i)
    for (int64_t c = 0; c < 2; ++c)
      CHECK(logits.data()[2 * i + c] ==
            doctest::Approx(online.logits(some)[static_cast<size_t>(i)][static_cast<size_t>(c)]).epsilon(1e-4));

  const std::string model = (folder / "model.safetensors").string(), rest = (folder / "online.safetensors").string();
  const real* const weights = params.values() + params.find("linear.weight").offset;
  write_safetensors(model, {{"linear.weight", DType::f32, {1 << 12, 2}, weights}});
  online.write(rest);
  OnlineClassifier again(linear_config(1 << 12), 2, false);
  const SafetensorsFile saved(rest);
  again.read(SafetensorsFile(model), &saved);
  for (OnlineClassifier* const both : {&online, &again}) learn_all(*both, {texts.begin() + 400, texts.end()}, 100);
  CHECK(again.logits(some) == online.logits(some));
}

}  // namespace
}  // namespace capstan::testing
