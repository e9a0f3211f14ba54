// How sure linear classifiers are of what they say.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cmath>

#include "tests/train/linear/linear_samples.hpp"

namespace capstan::testing {
namespace {

TEST_CASE("linear classifiers: the factor of the logits gives the lowest cross entropy with two texts of doubt") {
  // Two texts, each with the wrong label in one of so many cases: no probabilities are better than these shares. Every
  // fold has the same texts, which differ in blanks, or they would be copies.
  for (const int one_in : {5, 8, 10, 15}) {
    INFO("one in ", one_in);
    std::vector<Text> texts;
    for (int i = 0; i < 20 * one_in; ++i) {
      const int text = i / 5 % 2;
      const bool wrong = i / 10 % one_in == 0;
      texts.push_back(
          {(text == 0 ? "goal" : "bank") + std::string(static_cast<size_t>(i), ' '), wrong ? 1 - text : text});
    }
    const Solution solution(rows_of(texts, 2, linear_config()), 1);
    const double share = 1.0 / one_in, p = share + 2 * (1 - 2 * share) / static_cast<double>(texts.size() + 4);
    CHECK(solution.fit.held_out.loss() ==
          doctest::Approx(-share * std::log(p) - (1 - share) * std::log(1 - p)).epsilon(1e-4));
  }
}

/// Texts of several words of their class, none of which another class has.
std::vector<Text> separable_texts(const std::vector<int>& of_class) {
  RandomStream random(random_key(9, "separable texts"));
  std::vector<Text> texts;
  for (size_t c = 0; c < of_class.size(); ++c)
    for (int i = 0; i < of_class[c]; ++i) {
      std::string text = "the";
      for (int w = 0; w < 4; ++w)
        text += fmt::format(" {}{}", std::string(3, static_cast<char>('a' + c)), random.below(9));
      texts.push_back({text, static_cast<int32_t>(c)});
    }
  return texts;
}

TEST_CASE(
    "linear classifiers: where no text is wrong, none is surer than so many texts allow, and an unknown one not") {
  for (const std::vector<int>& of_class :
       {std::vector<int>{100, 100}, {20, 180}, {60, 80, 60}, {10, 30, 160}, {8, 8}}) {
    const std::vector<Text> texts = separable_texts(of_class);
    const auto classes = static_cast<int32_t>(of_class.size());
    INFO(texts.size(), " texts of ", classes, " classes");
    const Solution solution(rows_of(texts, classes, linear_config(1 << 16)), 1);
    CHECK(solution.fit.held_out.accuracy() == 1);
    CHECK(solution.accuracy(texts) == 1);
    CHECK(solution.fit.warning == "");
    const double doubt = 1 / static_cast<double>(texts.size() + 2);
    double surest = 0, mean = 0;
    for (const Text& text : texts) {
      const double p = solution.probability(text.text, text.label);
      surest = std::max(surest, p);
      mean += p / static_cast<double>(texts.size());
    }
    CHECK(1 - surest > doubt / 2);
    CHECK(1 - mean < 6 * doubt);
    CHECK(solution.fit.held_out.loss() < 6 * doubt);
    for (const char* const unknown : {"", " ", "zzz 123"})  // gets the shares of the classes
      for (int32_t c = 0; c < classes; ++c)
        CHECK(solution.probability(unknown, c) == doctest::Approx((of_class[static_cast<size_t>(c)] + 1.0) /
                                                                  static_cast<double>(texts.size() + of_class.size()))
                                                      .epsilon(1e-4));
  }
}

TEST_CASE("linear classifiers: labels that no word explains get about their shares, and a warning says so") {
  std::vector<Text> texts = sample_texts(600);
  RandomStream random(random_key(3, "labels"));
  for (Text& text : texts) text.label = random.uniform() < 0.3 ? 1 : 0;
  const Solution solution(rows_of(texts, 2, linear_config()), 1);
  double mean = 0;
  const std::vector<Text> unseen = sample_texts(100);
  for (const Text& text : unseen) mean += solution.probability(text.text, 1) / static_cast<double>(unseen.size());
  CHECK(mean == doctest::Approx(0.3).epsilon(0.2));
  CHECK(solution.fit.held_out.loss() < 0.66);  // 0.61 is the entropy
  for (const char* const says : {"next to nothing was learnt", "the largest class has"})
    CHECK_MESSAGE(solution.fit.warning.find(says) != std::string::npos, solution.fit.warning);
}

}  // namespace
}  // namespace capstan::testing
