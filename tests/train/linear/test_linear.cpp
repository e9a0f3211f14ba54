// Solving for linear classifiers over n-grams.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <set>

#include <fmt/core.h>

#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"
#include "tests/train/linear/linear_samples.hpp"
#include "train/evaluation/evaluate_classifier.hpp"
#include "train/linear/cross_validation.hpp"
#include "train/linear/dual_svm.hpp"

namespace capstan::testing {
namespace {

TEST_CASE("rows of n-grams: inverse document frequencies, unit norms, rare n-grams left out") {
  std::vector<Text> texts = sample_texts(150);
  texts.push_back({"hapax", 0});
  const NgramRows rows = rows_of(texts, 2, config_of(1 << 16));
  const auto with = [&](const std::string& word) {
    return std::count_if(texts.begin(), texts.end(), [&](const Text& t) {
      return (" " + t.text + " ").find(" " + word + " ") != std::string::npos;
    });
  };
  const auto scale_of = [&](const std::string& word) {
    return static_cast<double>(rows.scale()[count_ngrams(word, {{1}, {}}, 16).words.at(0).bucket()]);
  };
  for (const char* const word : {"the", "goal", "bank"})
    CHECK(scale_of(word) == doctest::Approx(std::log(152.0 / static_cast<double>(1 + with(word))) + 1));
  CHECK(scale_of("hapax") == 0);
  for (int64_t row = 0; row < rows.rows(); ++row)
    for (const int which : {0, 1}) {
      const NgramBlock block = rows.block(row, which);
      double squares = 0;
      for (const NgramCount* entry = block.begin; entry != block.end; ++entry)
        squares +=
            std::pow(static_cast<double>(block.norm * count_weight(entry->count()) * rows.scale()[entry->bucket()]), 2);
      CHECK((block.begin == block.end || squares == doctest::Approx(1)));
    }
}

TEST_CASE("rows of n-grams: a text counts once where a word and characters of it share a bucket") {
  const std::vector<Text> texts = sample_texts(40);
  LinearClassifierConfig config = config_of(64);
  config.min_texts = 2;
  const NgramRows rows = rows_of(texts, 2, config);
  std::vector<int64_t> with(64, 0);
  int64_t shared = 0;
  for (const Text& text : texts) {
    const TextNgrams found = count_ngrams(text.text, {config.words, config.characters}, 6);
    std::set<uint32_t> buckets;
    for (const auto* const counts : {&found.words, &found.characters})
      for (const NgramCount& entry : *counts) buckets.insert(entry.bucket());
    for (const uint32_t bucket : buckets) ++with[bucket];
    shared += static_cast<int64_t>(found.words.size() + found.characters.size() - buckets.size());
  }
  REQUIRE(shared > 50);
  for (size_t f = 0; f < with.size(); ++f) {
    const double idf = std::log(41.0 / static_cast<double>(1 + with[f])) + 1;
    CHECK(static_cast<double>(rows.scale()[f]) == doctest::Approx(with[f] < 2 ? 0 : idf));
  }
}

TEST_CASE("rows of n-grams: the number of buckets follows the texts") {
  const NgramRows rows = rows_of(sample_texts(200), 2, config_of(0));
  const int64_t ngrams = std::count_if(rows.scale().begin(), rows.scale().end(), [](float s) { return s > 0; });
  CHECK(rows.config().buckets >= 3 * ngrams);
  CHECK(rows.config().buckets <= 10 * ngrams);
}

TEST_CASE("rows of n-grams: those of characters are left out where memory is short, those of words are an error") {
  const Samples samples(sample_texts(200));
  const LabelledTexts texts = samples.texts();
  const auto bytes = [&](const LinearClassifierConfig& config) { return 4 * NgramRows(texts, config, 2).entries(); };
  LinearClassifierConfig config = config_of(), words = config_of();
  words.characters.clear();
  REQUIRE(bytes(words) < bytes(config));
  const NgramRows rows(texts, config, 2, nullptr, (bytes(words) + bytes(config)) / 2);
  CHECK(rows.config().characters.empty());
  CHECK(rows.config().words == config.words);
  try {
    NgramRows(texts, config, 2, nullptr, 100);
    FAIL("too little memory was accepted");
  } catch (const std::exception& error) {
    CHECK(std::string(error.what()).find("model.words") != std::string::npos);
  }
}

/// The gradient of the primal at the solution, over the largest of its terms: w' - 2 C sum_i max(0, 1 - y_i f_i) y_i
/// x'_i.
double primal_gradient(const NgramRows& rows, const SvmProblem& problem, const SvmSolution& solution,
                       const std::vector<float>& ratios) {
  std::vector<double> sums(rows.scale().size() + 1, 0);
  for (const int64_t row : problem.rows) {
    const double y = rows.has(row, problem.positive) ? 1 : -1;
    const double slack = std::max(0.0, 1 - y * static_cast<double>(solution.score(rows, row)));
    sums.back() += 2 * problem.cost * slack * y;
    for (const int which : {0, 1}) {
      const NgramBlock block = rows.block(row, which);
      for (const NgramCount* entry = block.begin; entry != block.end; ++entry) {
        const uint32_t f = entry->bucket();
        sums[f] += 2 * problem.cost * slack * y *
                   static_cast<double>(block.norm * count_weight(entry->count()) * rows.scale()[f] * ratios[f]);
      }
    }
  }
  double worst = std::abs(static_cast<double>(solution.bias) - sums.back()), largest = std::abs(sums.back());
  for (size_t k = 0; k < solution.base_weights.size(); ++k) {
    double sum = 0;
    for (const int64_t row : problem.rows) {
      const double y = rows.has(row, problem.positive) ? 1 : -1;
      const double slack = std::max(0.0, 1 - y * static_cast<double>(solution.score(rows, row)));
      sum += 2 * problem.cost * slack * y * static_cast<double>(rows.base_scores(row)[k]);
    }
    worst = std::max(worst, std::abs(static_cast<double>(solution.base_weights[k]) - sum));
  }
  for (size_t f = 0; f + 1 < sums.size(); ++f) {
    const double factor = static_cast<double>(rows.scale()[f] * ratios[f]);
    if (factor == 0) continue;
    worst = std::max(worst, std::abs(static_cast<double>(solution.weights[f]) / factor - sums[f]));
    largest = std::max(largest, std::abs(sums[f]));
  }
  return worst / largest;
}

/// What is minimised.
double primal(const NgramRows& rows, const SvmProblem& problem, const SvmSolution& solution,
              const std::vector<float>& ratios) {
  double sum = std::pow(static_cast<double>(solution.bias), 2) / 2;
  for (const float weight : solution.base_weights) sum += std::pow(static_cast<double>(weight), 2) / 2;
  for (size_t f = 0; f < ratios.size(); ++f)
    if (const auto factor = static_cast<double>(rows.scale()[f] * ratios[f]); factor != 0)
      sum += std::pow(static_cast<double>(solution.weights[f]) / factor, 2) / 2;
  for (const int64_t row : problem.rows) {
    const double y = rows.has(row, problem.positive) ? 1 : -1;
    sum += problem.cost * std::pow(std::max(0.0, 1 - y * static_cast<double>(solution.score(rows, row))), 2);
  }
  return sum;
}

void check_solutions(const std::vector<Text>& texts, const std::shared_ptr<const BaseClassifier>& base) {
  const NgramRows rows = rows_of(texts, 2, config_of(), base);
  // Log-count ratios, from their definition.
  std::vector<float> ones(rows.scale().size(), 1), ratios = ones;
  std::vector<double> p(ratios.size(), 1), q = p;
  for (int64_t row = 0; row < rows.rows(); ++row)
    for (const int which : {0, 1}) {
      const NgramBlock block = rows.block(row, which);
      for (const NgramCount* entry = block.begin; entry != block.end; ++entry)
        (rows.has(row, 1) ? p : q)[entry->bucket()] += 1;
    }
  double sum_p = 0, sum_q = 0;
  for (size_t f = 0; f < p.size(); ++f) {
    if (rows.scale()[f] == 0) continue;
    sum_p += p[f];
    sum_q += q[f];
  }
  for (size_t f = 0; f < p.size(); ++f) ratios[f] = static_cast<float>(std::log(p[f] / sum_p / (q[f] / sum_q)));
  for (const double cost : {0.1, 1.0})
    for (const bool with_ratios : {false, true}) {
      INFO("C ", cost, ", ratios ", with_ratios);
      SvmProblem problem{all_rows(rows), 1, cost, with_ratios, random_key(1, "order")};
      problem.tolerance = 1e-5;
      const auto solution = solve_svm(rows, problem);
      CHECK(primal_gradient(rows, problem, solution, with_ratios ? ratios : ones) < 2e-3);
      const double least = primal(rows, problem, solution, with_ratios ? ratios : ones);
      problem.tolerance = SvmProblem().tolerance;
      const double usual = primal(rows, problem, solve_svm(rows, problem), with_ratios ? ratios : ones);
      CHECK(usual >= least * (1 - 1e-5));
      CHECK(usual < least * 1.005);
      CHECK(solution.base_weights.size() == (base == nullptr ? 0 : 3));
    }
}

TEST_CASE("dual coordinate descent: the gradient of the primal is zero at the solution") {
  check_solutions(sample_texts(300), nullptr);
}

TEST_CASE("dual coordinate descent: the presence of n-grams is about 1 for all texts, and 0 for one without any") {
  std::vector<Text> texts = sample_texts(2000);
  texts.push_back({" ", 0});
  const NgramRows rows = rows_of(texts, 2, config_of());
  const SvmSolution presence = solve_presence(rows, all_rows(rows), 1);
  double mean = 0;
  for (int64_t row = 0; row < 2000; ++row) mean += static_cast<double>(presence.score(rows, row)) / 2000;
  CHECK(std::abs(mean - 1) < 0.1);
  CHECK(presence.score(rows, 2000) == 0);
}

TEST_CASE("dual coordinate descent: the same with the scores of a base classifier") {
  const Solution base(rows_of(sample_texts(200, 3), 3, config_of()), 1);
  check_solutions(sample_texts(300), base.as_base());
}

TEST_CASE("linear classifiers: what they learn, and that their cross-validation tells how well") {
  for (const int32_t classes : {2, 3}) {
    INFO(classes, " classes");
    std::vector<Text> texts = sample_texts(800, classes);
    const std::vector<Text> unseen(texts.begin() + 500, texts.end());
    texts.resize(500);
    const Solution solution(rows_of(texts, classes, config_of(0)), 1);
    CHECK(solution.fit.held_out.targets == 500);
    const double accuracy = solution.accuracy(unseen);
    CHECK(accuracy > 0.8);
    CHECK(std::abs(accuracy - solution.fit.held_out.accuracy()) < 0.06);
    CHECK(solution.fit.held_out.loss() < 0.5);
  }
}

TEST_CASE("linear classifiers: the factor of the logits gives the lowest cross entropy with two texts of doubt") {
  // Two texts, each with the wrong label in one of so many cases: no probabilities are better than these shares. Every
  // fold has the same texts.
  for (const int one_in : {5, 8, 10, 15}) {
    INFO("one in ", one_in);
    std::vector<Text> texts;
    for (int i = 0; i < 20 * one_in; ++i) {
      const int text = i / 5 % 2;
      const bool wrong = i / 10 % one_in == 0;
      texts.push_back({text == 0 ? "goal" : "bank", wrong ? 1 - text : text});
    }
    const Solution solution(rows_of(texts, 2, config_of()), 1);
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

TEST_CASE("linear classifiers: where no text is wrong, none is surer than so many texts allow") {
  for (const std::vector<int>& of_class : {std::vector<int>{100, 100}, {20, 180}, {60, 80, 60}, {8, 8}}) {
    const std::vector<Text> texts = separable_texts(of_class);
    const auto classes = static_cast<int64_t>(of_class.size());
    INFO(texts.size(), " texts of ", classes, " classes");
    const Solution solution(rows_of(texts, classes, config_of(1 << 14)), 1);
    REQUIRE(solution.fit.held_out.accuracy() == 1);
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
  }
}

TEST_CASE(
    "linear classifiers: a text of which nothing is known has the shares of the classes, and loses no other one") {
  for (const std::vector<int>& of_class : {std::vector<int>{100, 100}, {20, 180}, {10, 30, 160}}) {
    const std::vector<Text> texts = separable_texts(of_class);
    const auto classes = static_cast<int64_t>(of_class.size());
    INFO(texts.size(), " texts of ", classes, " classes");
    const Solution solution(rows_of(texts, classes, config_of(1 << 16)), 1);
    for (const char* const unknown : {"", " ", "zzz 123"})
      for (int32_t c = 0; c < classes; ++c) {
        const double share =
            (of_class[static_cast<size_t>(c)] + 1.0) / static_cast<double>(texts.size() + of_class.size());
        CHECK(solution.probability(unknown, c) == doctest::Approx(share).epsilon(1e-4));
      }
    CHECK(solution.accuracy(texts) == 1);
  }
}

TEST_CASE("linear classifiers: labels that no word explains get about their shares") {
  std::vector<Text> texts = sample_texts(400);
  RandomStream random(random_key(3, "labels"));
  for (Text& text : texts) text.label = random.uniform() < 0.3 ? 1 : 0;
  const Solution solution(rows_of(texts, 2, config_of()), 1);
  double mean = 0;
  const std::vector<Text> unseen = sample_texts(100);
  for (const Text& text : unseen) mean += solution.probability(text.text, 1) / static_cast<double>(unseen.size());
  CHECK(mean == doctest::Approx(0.3).epsilon(0.2));
  CHECK(solution.fit.held_out.loss() < 0.66);  // 0.61 is the entropy
}

TEST_CASE("linear classifiers: a text has any number of labels, each from a threshold of its own") {
  // Of two labels, neither is the other's opposite: texts have both, one or none.
  const std::vector<std::string> topics{"goal team match", "bank stock shares"};
  ExampleSet examples = ExampleSet::multi_label(2);
  const ByteTokenizer tokenizer;
  RandomStream random(random_key(8, "several labels"));
  std::vector<int64_t> order;
  for (int i = 0; i < 300; ++i) {
    std::string text = "today";
    LabelSet labels;
    for (int32_t c = 0; c < 2; ++c)
      if (random.uniform() < (c == 0 ? 0.5 : 0.1)) {
        labels.push_back(c);
        text += " " + topics[static_cast<size_t>(c)];
      }
    examples.add(tokenizer.encode(text), labels);
    order.push_back(i);
  }
  const LabelledTexts texts(examples, tokenizer, order);
  const NgramRows rows(texts, config_of(), 2);
  ParamStore store;
  const LinearClassifier linear(Scope(store, 1), rows.config(), 2, true);
  store.finalize();
  const auto fit = fit_linear(rows, store, 1);
  REQUIRE(fit.labels);
  CHECK(fit.labels->all.f1() > 0.95);
  CHECK(fit.labels->thresholds == linear.thresholds());
  const auto found = evaluate_classifier(linear, texts);
  REQUIRE(found.labels);
  CHECK(found.labels->macro_f1() > 0.95);
  CHECK(found.total.accuracy() == found.labels->accuracy());
  const auto has = [&](const std::string& text, int64_t label) {
    const Array probabilities = linear.probabilities(Var(linear.text_logits({text})));
    return reaches(probabilities.data()[label], linear.thresholds()[static_cast<size_t>(label)]);
  };
  CHECK(has("team match bank shares", 0));
  CHECK(has("team match bank shares", 1));
  CHECK_FALSE(has("today", 0));
  CHECK_FALSE(has("today", 1));
  for (int64_t label = 0; label < 2; ++label) {  // a text of which nothing is known has the shares of the labels
    int64_t with = 1;
    for (int64_t i = 0; i < rows.rows(); ++i) with += rows.has(i, static_cast<int32_t>(label)) ? 1 : 0;
    CHECK(linear.probabilities(Var(linear.text_logits({""}))).data()[label] ==
          doctest::Approx(static_cast<double>(with) / 302).epsilon(1e-4));
  }
}

TEST_CASE("linear classifiers: the same bits on any number of threads, others with another seed") {
  const NgramRows rows = rows_of(sample_texts(300, 3), 3, config_of());
  const int before = threads();
  set_threads(1);
  const std::vector<real> one = Solution(rows, 1).values();
  for (const int count : {2, 3}) {
    set_threads(count);
    CHECK(Solution(rows, 1).values() == one);
  }
  set_threads(before);
  CHECK(Solution(rows, 2).values() != one);
}

TEST_CASE("linear classifiers: few texts, a class that is alone, texts without n-grams") {
  const std::vector<std::vector<Text>> sets{
      {{"good", 1}, {"bad", 0}},  {{"good", 1}, {"bad", 0}, {"fine", 2}},
      {{"good", 1}, {" ", 0}},    {{" ", 1}, {" ", 0}, {"\n", 1}},
      {{"same", 1}, {"same", 0}},
  };
  LinearClassifierConfig config = config_of(0);
  config.min_texts = 0;
  for (const auto& texts : sets) {
    const int64_t classes = texts.size() == 3 && texts[2].label == 2 ? 3 : 2;
    const Solution solution(rows_of(texts, classes, config), 1);
    for (const real value : solution.values()) CHECK(std::isfinite(value));
    if (texts.front().text == "good" && texts[1].text == "bad") CHECK(solution.accuracy(texts) == 1);
  }
  // A class that the data name, but no text has.
  const Solution solution(rows_of(sample_texts(50), 4, config_of(0)), 1);
  CHECK(solution.predict("goal team") == 0);
}

/// Asked to stop from the `allowed`th question on.
struct Patience {
  explicit Patience(int allowed) : poll([=] { return asked++ >= allowed; }) {}
  std::atomic<int> asked{0};
  const StopPoll poll;
};

TEST_CASE("linear classifiers: the solver stops between a few rows of a pass") {
  const NgramRows rows = rows_of(sample_texts(2000), 2, config_of());
  const SvmProblem problem{all_rows(rows), 1, 1, true, random_key(1, "order")};
  for (const int allowed : {0, 1, 2500, 4050}) {  // the ratios, then the diagonal ask for each row
    INFO(allowed);
    Patience patience(allowed);
    const StopScope scope(&patience.poll);
    CHECK_THROWS_AS(solve_svm(rows, problem), Stopped);
    CHECK(patience.asked == allowed + 1);
  }
  Patience endless(1'000'000);
  const StopScope scope(&endless.poll);
  solve_svm(rows, problem);
  CHECK(endless.asked >= 4000 + 2 * 2000 / 16);
}

TEST_CASE(
    "linear classifiers: reading, cross-validation, the choice of C and the evaluation stop when they are asked") {
  const Samples samples(sample_texts(300, 3));
  const NgramRows rows(samples.texts(), config_of(), 3);
  ParamStore store;
  const LinearClassifier linear(Scope(store, 1), rows.config(), 3);
  store.finalize();
  Patience endless(1'000'000'000);
  {
    const StopScope scope(&endless.poll);
    fit_linear(rows, store, 1);
  }
  const int questions = endless.asked;
  for (int allowed = 0; allowed < questions; allowed += questions / 20) {
    INFO(allowed, " of ", questions);
    Patience patience(allowed);
    const StopScope scope(&patience.poll);
    CHECK_THROWS_AS(fit_linear(rows, store, 1), Stopped);
  }
  Patience none(0), some(100);
  const StopScope reading(&none.poll);
  CHECK_THROWS_AS(NgramRows(samples.texts(), config_of(), 3), Stopped);
  const StopScope evaluation(&some.poll);
  CHECK_THROWS_AS(evaluate_classifier(linear, samples.texts()), Stopped);
}

}  // namespace
}  // namespace capstan::testing
