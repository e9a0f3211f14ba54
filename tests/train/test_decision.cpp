#include <doctest/doctest.h>

#include <cmath>

#include "core/base/random.hpp"
#include "train/evaluation/classification_report.hpp"
#include "train/evaluation/decision.hpp"
#include "train/evaluation/ranked_texts.hpp"

namespace capstan {
namespace {

/// Texts of which one in `ratio` has the second class, with probabilities that are right.
HeldOutPredictions rare_texts(int64_t count, int ratio) {
  HeldOutPredictions all(2);
  RandomStream random(random_key(7, "rare texts"));
  for (int64_t i = 0; i < count; ++i) {
    const bool rare = random.below(static_cast<uint64_t>(ratio)) == 0;
    const double x = (rare ? 1.0 : -1.0) + 2 * (random.uniform() + random.uniform() + random.uniform() - 1.5);
    const double odds = std::exp(2 * x) / ratio;
    const auto p = static_cast<float>(odds / (1 + odds));
    const float both[] = {1 - p, p};
    all.add(both, rare ? 1 : 0);
  }
  return all;
}

DecisionFigures figures_with(const HeldOutPredictions& texts, const DecisionGoal& goal, const DecisionRule& rule) {
  ClassificationReport report(texts.classes(), rule);
  for (int64_t i = 0; i < texts.size(); ++i) report.add(texts.probabilities(i), texts.truth(i));
  return figures_of(report, goal);
}

}  // namespace

TEST_CASE("a decision: the likeliest class, by factors, and by costs") {
  const float p[] = {0.5F, 0.3F, 0.2F};
  struct Case {
    DecisionRule rule;
    int64_t chosen;
  };
  const Case cases[] = {{{}, 0},
                        {{1, 2, 1}, 1},
                        {{1, 1, 5}, 2},
                        {{1, 1, 2.4}, 0},
                        {{0, 1, 1, 1, 0, 1, 1, 1, 0}, 0},
                        {{0, 1, 1, 9, 0, 9, 1, 1, 0}, 1},
                        {{0, 1, 1, 1, 0, 1, 9, 9, 0}, 2}};
  for (const Case& c : cases) CHECK(decide(c.rule, p, 3) == c.chosen);
}

TEST_CASE(
    "a rule for macro-F1 or for the F1 of a class gives a rare class more texts, and changes no accuracy of none") {
  const HeldOutPredictions texts = rare_texts(4000, 20), others = rare_texts(20000, 20);
  const DecisionGoal macro{DecisionGoal::Kind::macro_f1, 2, -1, {}}, rare{DecisionGoal::Kind::f1, 2, 1, {}};
  const DecisionRule for_macro = best_rule(texts, macro).rule, for_rare = best_rule(texts, rare).rule;
  const DecisionFigures plain = figures_with(others, rare, {}), ruled = figures_with(others, macro, for_macro);
  CHECK(ruled.macro_f1 > plain.macro_f1 + 0.005);
  CHECK(*figures_with(others, rare, for_rare).f1 > *plain.f1 + 0.01);
  CHECK(best_rule(texts, {}).rule.empty());
  const DecisionGoal weights{DecisionGoal::Kind::given, 2, -1, {0.5, 10}};
  CHECK(best_rule(texts, weights).rule == weights.rule);
}

TEST_CASE("a rule does not depend on the order of the texts, which travel as bytes") {
  HeldOutPredictions texts = rare_texts(500, 5), reversed(2), sent(2);
  for (int64_t i = texts.size() - 1; i >= 0; --i) reversed.add(texts.probabilities(i), texts.truth(i));
  sent.add(reversed.bytes());
  texts.sort();
  sent.sort();
  const DecisionGoal goal{DecisionGoal::Kind::macro_f1, 2, -1, {}};
  CHECK(best_rule(texts, goal).rule == best_rule(sent, goal).rule);
  CHECK_THROWS_AS(sent.add("abc"), std::invalid_argument);
}

TEST_CASE("costs: the mean of what mistakes cost") {
  HeldOutPredictions texts(2);
  const float p[] = {0.6F, 0.4F};
  for (const int truth : {0, 0, 0, 1, 1}) texts.add(p, truth);
  const DecisionGoal goal{DecisionGoal::Kind::cost, 2, -1, {0, 1, 5, 0}};  // missing the second class costs 5
  const DecisionFigures figures = figures_with(texts, goal, best_rule(texts, goal).rule);
  CHECK(figures.correct == 2);
  CHECK(*figures.cost == doctest::Approx(3.0 / 5));
  CHECK(*figures_with(texts, goal, {}).cost == doctest::Approx(2));
}

TEST_CASE("a recall, or a precision, that is asked for is reached on other texts; one that cannot be has no rule") {
  const HeldOutPredictions texts = rare_texts(20000, 20), others = rare_texts(20000, 20);
  for (const double at_least : {0.5, 0.9}) {
    CAPTURE(at_least);
    DecisionGoal recall{DecisionGoal::Kind::recall, 2, 1, {}, at_least};
    DecisionGoal precision{DecisionGoal::Kind::precision, 2, 1, {}, at_least};
    const auto share_of_rare = [&](const DecisionGoal& goal, const auto& share) {
      ClassificationReport report(2, best_rule(texts, goal).rule);
      for (int64_t i = 0; i < others.size(); ++i) report.add(others.probabilities(i), others.truth(i));
      return share(report);
    };
    CHECK(share_of_rare(recall, [](const auto& report) { return report.recall(1); }) ==
          doctest::Approx(at_least).epsilon(0.06));
    CHECK(share_of_rare(precision, [](const auto& report) { return report.precision(1); }) ==
          doctest::Approx(at_least).epsilon(0.06));
  }
  HeldOutPredictions wrong(2);
  const float sure[] = {0.1F, 0.9F};
  for (int i = 0; i < 10; ++i) wrong.add(sure, 0);
  CHECK(best_rule(wrong, {DecisionGoal::Kind::precision, 2, 1, {}, 0.9}).rule.empty());
}

TEST_CASE("average precision and curves: as scikit-learn has them") {
  RankedTexts ranked(1, 6);
  const float scores[] = {0.9F, 0.8F, 0.8F, 0.4F, 0.35F, 0.1F};
  const bool truth[] = {true, false, true, false, true, false};
  for (size_t i = 0; i < 6; ++i) ranked.add(scores + i, [&](int64_t) { return truth[i]; });
  // average_precision_score([1, 0, 1, 0, 1, 0], [.9, .8, .8, .4, .35, .1])
  CHECK(*ranked.average_precision(0) == doctest::Approx(0.7555555).epsilon(1e-6));
  const LabelCounts at = ranked.at(0, 0.5);
  CHECK(at.precision() == doctest::Approx(2.0 / 3));
  CHECK(at.recall() == doctest::Approx(2.0 / 3));
  const RankedTexts many(2, RankedTexts::max_values);
  CHECK(!many.kept());
  CHECK(!many.mean_average_precision());
}

}  // namespace capstan
