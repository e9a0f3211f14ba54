// Linear classifiers that start from others.
#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.hpp"
#include "tests/train/linear/linear_samples.hpp"
#include "train/linear/cross_validation.hpp"
#include "train/linear/dual_svm.hpp"

namespace capstan::testing {

TEST_CASE("a base classifier: its n-grams keep their scale, its scores have one deviation and are those of its model") {
  const Solution base(rows_of(sample_texts(200, 3), 3, linear_config()), 1);
  std::vector<Text> texts = sample_texts(100);
  for (Text& text : texts) text.text += " novel novelty";
  const Samples samples(texts);
  const NgramRows rows(samples.texts(), linear_config(), 2, base.as_base()), alone = rows_of(texts, 2, linear_config());
  const std::vector<float> known = base.values("linear.scale");
  for (size_t f = 0; f < known.size(); ++f) CHECK(rows.scale()[f] == (known[f] != 0 ? known[f] : alone.scale()[f]));
  CHECK(rows.base_factor().size() == 3);
  // A model of the base's weights and of the rows' scale.
  ParamStore store;
  const LinearClassifier joined(Scope(store, 1), rows.config(), 3);
  store.finalize();
  const auto copy = [&](const std::string& name, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), store.values() + store.find(name).offset);
  };
  copy("linear.scale", rows.scale());
  copy("linear.weight", base.values("linear.weight"));
  copy("linear.bias", base.values("linear.bias"));
  double sum = 0, squares = 0;
  for (int64_t row = 0; row < rows.rows(); ++row) {
    const Array logits = joined.text_logits({texts[static_cast<size_t>(row)].text});
    for (size_t k = 0; k < 3; ++k)
      CHECK(rows.base_scores(row)[k] ==
            doctest::Approx(static_cast<double>(logits[k] * rows.base_factor()[k])).epsilon(1e-4));
    sum += static_cast<double>(rows.base_scores(row)[0]);
    squares += std::pow(static_cast<double>(rows.base_scores(row)[0]), 2);
  }
  const auto count = static_cast<double>(rows.rows());
  CHECK(std::sqrt(squares / count - std::pow(sum / count, 2)) ==
        doctest::Approx(NgramRows::base_deviation).epsilon(1e-3));
}

TEST_CASE("a base classifier: what memory does not suffice for is refused, with remedies that keep the base's keys") {
  const auto base = std::make_shared<BaseClassifier>(BaseClassifier{
      linear_config(16), 1000, std::vector<float>(16, 1), std::vector<float>(16000), std::vector<float>(1000)});
  const Samples samples(std::vector<Text>(200, Text{"goal", 0}));
  for (const int64_t bytes : {100, 100'000})  // too few for the n-grams, for the scores
    CHECK_THROWS_WITH_AS(NgramRows(samples.texts(), linear_config(16), 2, base, {bytes, bytes}),
                         doctest::Contains("1000 scores for each of 200 texts"), Error);
}

TEST_CASE("a base classifier: the joined table gives the scores of the solution") {
  // Few texts of the second class, and a base whose scores have a large mean: the bias of the base counts.
  std::vector<Text> texts;
  for (const Text& text : sample_texts(2000))
    if (text.label == 0 || texts.size() % 8 == 0) texts.push_back(text);
  const BaseClassifier plain = *Solution(rows_of(sample_texts(600), 2, linear_config()), 1).as_base();
  BaseClassifier base{plain.config, 1, plain.scale, {}, {plain.bias[1] + 20}};
  for (size_t f = 0; f < plain.scale.size(); ++f) base.weight.push_back(plain.weight[2 * f + 1]);
  const Samples samples(texts);
  const NgramRows rows(samples.texts(), linear_config(), 2, std::make_shared<BaseClassifier>(base));
  const Solution from(rows, 1);
  REQUIRE(from.fit.report.back().find("weights 1 x TF-IDF (C 0.25) + 0 x") != std::string::npos);
  const auto solved = solve_svm(rows, {all_rows(rows), 1, 0.25, false, random_key(1, "order of rows")});
  const SvmSolution intercept = solve_intercept(rows, all_rows(rows), 1);
  // Of a text without known n-grams, the shares of the classes; otherwise the score, as far as n-grams are present.
  const double share = log_priors(rows)[1], unknown = static_cast<double>(solved.score_of_unknown(rows));
  CHECK(static_cast<double>(from.linear->text_logits({""})[1]) == doctest::Approx(share).epsilon(1e-4));
  double factor = 0;
  for (int64_t row = 0; row < rows.rows(); ++row) {
    const Array logits = from.linear->text_logits({texts[static_cast<size_t>(row)].text});
    const double absence = 1 - static_cast<double>(intercept.score(rows, row)),
                 score = static_cast<double>(solved.score(rows, row)) - absence * unknown,
                 logit = static_cast<double>(logits[1]) - absence * share;
    if (row == 0) factor = logit / score;
    CHECK(std::abs(logit - factor * score) < 2e-3);
  }
}

}  // namespace capstan::testing
