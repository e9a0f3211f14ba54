// Linear classifiers of more n-grams than are solved for.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cmath>
#include <cstdlib>

#include "core/base/stop.hpp"
#include "core/io/file.hpp"
#include "core/io/hash.hpp"
#include "core/machine/parallel.hpp"
#include "tests/train/linear/linear_samples.hpp"
#include "tests/train/support.hpp"
#include "train/evaluation/classifier_evaluation.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/linear/fit_adagrad.hpp"

namespace capstan::testing {
namespace {

NgramRows many_rows(const Samples& samples, int64_t classes, RowBudget budget) {
  return {samples.texts(), linear_config(1 << 14), classes, nullptr, budget};
}

TEST_CASE("AdaGrad: as accurate as solving, about two and several classes, and probabilities that are right") {
  for (const int32_t classes : {2, 3}) {
    INFO(classes, " classes");
    std::vector<Text> texts = sample_texts(5000, classes);
    const std::vector<Text> unseen(texts.begin() + 4000, texts.end());
    texts.resize(4000);
    const Samples samples(texts);
    const Solution solved(rows_of(texts, classes, linear_config(1 << 14)), 1);
    const Solution learnt(many_rows(samples, classes, kept_for_adagrad), 1);
    CHECK(learnt.accuracy(unseen) > solved.accuracy(unseen) - 0.02);
    CHECK(learnt.fit.held_out.targets == 400);
    CHECK(learnt.fit.held_out.loss() < solved.fit.held_out.loss() + 0.05);
    CHECK(std::abs(learnt.accuracy(unseen) - learnt.fit.held_out.accuracy()) < 0.05);
    CHECK(learnt.fit.report.at(1).find("kept in memory") != std::string::npos);
    double loss = 0;
    for (const Text& text : unseen) loss -= std::log(learnt.probability(text.text, text.label)) / 1000;
    CHECK(loss == doctest::Approx(learnt.fit.held_out.loss()).epsilon(0.25));
    double sum = 0;
    for (int32_t c = 0; c < classes; ++c) {
      double share = 1;
      for (const Text& text : texts) share += text.label == c ? 1 : 0;
      CHECK(learnt.probability("", c) == doctest::Approx(share / (4000.0 + classes)).epsilon(1e-4));
      sum += learnt.probability("goal", c);
    }
    CHECK(sum == doctest::Approx(1));
  }
}

TEST_CASE("AdaGrad: the same bits on any number of threads, and whether rows are kept or not") {
  for (const int32_t classes : {2, 3}) {
    const Samples samples(sample_texts(1500, classes));
    const NgramRows kept = many_rows(samples, classes, kept_for_adagrad),
                    again = many_rows(samples, classes, made_again);
    const int before = threads();
    set_threads(1);
    const std::vector<real> one = Solution(kept, 1).values();
    CHECK(Solution(again, 1).values() == one);
    for (const int count : {2, 3}) {
      set_threads(count);
      CHECK(Solution(kept, 1).values() == one);
      CHECK(Solution(again, 1).values() == one);
    }
    set_threads(before);
    CHECK(Solution(kept, 2).values() != one);
  }
}

TEST_CASE("AdaGrad: any number of labels, and more classes than a vector instruction has room for") {
  ExampleSet examples = ExampleSet::multi_label(40);
  const ByteTokenizer tokenizer;
  RandomStream random(random_key(8, "several labels"));
  for (int i = 0; i < 3000; ++i) {
    std::string text = "today";
    LabelSet labels;
    for (int32_t c = 0; c < 40; ++c)
      if (random.uniform() < 0.05) {
        labels.push_back(c);
        text += fmt::format(" topic{}", c);
      }
    examples.add(tokenizer.encode(text), labels);
  }
  const LabelledTexts texts(examples, tokenizer);
  const NgramRows rows(texts, linear_config(1 << 14), 40, nullptr, kept_for_adagrad);
  ParamStore store;
  const LinearClassifier linear(Scope(store, 1), rows.config(), 40, true);
  store.finalize();
  const LinearFit fit = fit_linear(rows, store, 1);
  REQUIRE(fit.labels);
  CHECK(fit.labels->all.f1() > 0.9);
  for (size_t c = 0; c < 40; ++c) CHECK(fit.labels->thresholds[c] == doctest::Approx(linear.thresholds()[c]));
  CHECK(evaluate_classifier(linear, texts).labels->all.f1() > 0.9);
}

TEST_CASE("AdaGrad: texts without n-grams, and few of them") {
  for (const auto& texts : std::vector<std::vector<Text>>{{{"good", 1}, {"bad", 0}}, {{" ", 1}, {" ", 0}, {"\n", 1}}}) {
    const Samples samples(texts);
    const Solution solution(many_rows(samples, 2, made_again), 1);
    for (const real value : solution.values()) CHECK(std::isfinite(value));
  }
}

TEST_CASE("AdaGrad: what was stopped goes on where it was, with the same bits") {
  REQUIRE(setenv("CAPSTAN_WORK_SECONDS", "0", 1) == 0);
  const int before = threads();
  set_threads(1);  // where it stops is counted
  for (const int32_t classes : {2, 3}) {
    const Samples samples(sample_texts(3000, classes));
    const std::vector<real> whole = Solution(many_rows(samples, classes, made_again), 1).values();
    const TemporaryFolder folder;
    const WorkPlace place{(folder / "run").string(), "some data"};
    const auto work = [&] {
      const NgramRows rows(samples.texts(), linear_config(1 << 14), classes, nullptr, made_again, place);
      return Solution(rows, 1).values();
    };
    int allowed = 0, asked = 0, stopped = 0;
    const StopPoll poll = [&] { return ++asked > allowed; };
    // All but the last stop while n-grams are counted, or after a few batches of AdaGrad.
    for (const int more : {100, 2060, 960, 2, 3, 1, 4, 100'000'000}) {
      const StopScope scope(&poll);
      allowed = 2048 + more;  // after the estimate of the entries
      asked = 0;
      std::vector<real> found;
      try {
        found = work();
      } catch (const Stopped&) {
        ++stopped;
        continue;
      }
      CHECK(found == whole);
    }
    CHECK(stopped == 7);
    CHECK(names_in_folder(place.folder) == std::vector<std::string>{"adagrad.work", "ngrams.work"});
    write_text(folder / "run/adagrad.work", hash_hex("other work") + "damaged");
    truncate_file((folder / "run/ngrams.work").string(), 100);
    CHECK(work() == whole);
    WorkFile::remove_all(place.folder);
    CHECK(names_in_folder(place.folder).empty());
  }
  set_threads(before);
  unsetenv("CAPSTAN_WORK_SECONDS");
}

TEST_CASE("AdaGrad: it stops when it is asked") {
  const Samples samples(sample_texts(2000, 3));
  const NgramRows rows = many_rows(samples, 3, made_again);
  ParamStore store;
  const LinearClassifier linear(Scope(store, 1), rows.config(), 3);
  store.finalize();
  int allowed = 0, asked = 0;
  const StopPoll poll = [&] { return ++asked > allowed; };
  const StopScope scope(&poll);
  for (allowed = 0; allowed < 60; allowed += 20) {
    asked = 0;
    CHECK_THROWS_AS(fit_linear(rows, store, 1), Stopped);
  }
}

}  // namespace
}  // namespace capstan::testing
