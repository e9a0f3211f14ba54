// Solving for linear classifiers over n-grams.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cmath>
#include <set>

#include "core/machine/parallel.hpp"
#include "tests/train/linear/linear_samples.hpp"
#include "train/evaluation/classifier_evaluation.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/linear/cross_validation.hpp"
#include "train/linear/dual_svm.hpp"

namespace capstan::testing {
namespace {

TEST_CASE("rows of n-grams: inverse document frequencies, unit norms, rare n-grams left out") {
  std::vector<Text> texts = sample_texts(150);
  texts.push_back({"hapax", 0});
  for (const int bits : {6, 16}) {
    INFO(bits, " bits");
    const LinearClassifierConfig config = linear_config(int64_t{1} << bits);
    const NgramRows rows = rows_of(texts, 2, config);
    std::vector<int64_t> with(rows.scale().size(), 0);
    int64_t shared = 0;
    for (const Text& text : texts) {  // counts once for a bucket that words and characters of it share
      const TextNgrams found = count_ngrams(text.text, orders_of(config), bits);
      std::set<uint32_t> buckets;
      for (const auto* const counts : {&found.words, &found.characters})
        for (const NgramCount& entry : *counts) buckets.insert(entry.bucket());
      for (const uint32_t bucket : buckets) ++with[bucket];
      shared += static_cast<int64_t>(found.words.size() + found.characters.size() - buckets.size());
    }
    CHECK((shared > 50) == (bits == 6));
    for (size_t f = 0; f < with.size(); ++f) {
      const double idf = std::log(152.0 / static_cast<double>(1 + with[f])) + 1;
      CHECK(static_cast<double>(rows.scale()[f]) == doctest::Approx(with[f] < 2 ? 0 : idf));
    }
    for (int64_t row = 0; row < rows.rows(); ++row)
      for (const int which : {0, 1}) {
        const NgramBlock block = rows.block(row, which);
        double squares = 0;
        for (const NgramCount* entry = block.begin; entry != block.end; ++entry)
          squares += std::pow(
              static_cast<double>(block.norm * count_weight(entry->count()) * rows.scale()[entry->bucket()]), 2);
        CHECK((block.begin == block.end || squares == doctest::Approx(1)));
      }
  }
}

TEST_CASE("rows of n-grams: the number of buckets follows the texts") {
  const NgramRows rows = rows_of(sample_texts(200), 2, linear_config(0));
  const int64_t ngrams = std::count_if(rows.scale().begin(), rows.scale().end(), [](float s) { return s > 0; });
  CHECK(rows.config().buckets >= 3 * ngrams);
  CHECK(rows.config().buckets <= 10 * ngrams);
}

TEST_CASE("rows of n-grams: many texts have n-grams of more words, and many classes of long texts are not solved for") {
  LinearClassifierConfig config = linear_config();
  config.words.reset();
  const std::vector<Text> few(99'999, {"a b c", 0});
  std::vector<Text> many = few;
  many.push_back({"b c", 1});
  for (const auto& [texts, words] : {std::pair(&few, std::vector<int64_t>{1, 2}), {&many, {1, 2, 3}}}) {
    const NgramRows rows = rows_of(*texts, 2, config);
    CHECK(rows.config().words == words);
    CHECK_FALSE(rows.by_adagrad());  // hardly any n-grams
    LinearClassifierConfig again = config;
    take_choices(rows.config(), again);
    CHECK(again.words == words);
  }
  const std::vector<Text> some = sample_texts(1000);  // of some ten n-grams each
  CHECK_FALSE(rows_of(some, 100'000, linear_config()).by_adagrad());
  CHECK(rows_of(some, 1'000'000, linear_config()).by_adagrad());
}

TEST_CASE("rows of n-grams: those that are made again are the same as those that are kept") {
  const Samples samples(sample_texts(3000));
  const LabelledTexts texts = samples.texts();
  const NgramRows kept(texts, linear_config(), 2);
  CHECK_FALSE(kept.by_adagrad());
  REQUIRE(kept.entries() > 40'000);
  for (const int64_t most : {int64_t{1}, int64_t{120'000}}) {  // bytes: some rows are read before they are too many
    const NgramRows again(texts, linear_config(), 2, nullptr, {most, most});
    CHECK(again.by_adagrad());
    REQUIRE_FALSE(again.kept());
    CHECK(again.scale() == kept.scale());
    CHECK(again.rows() == kept.rows());
    RowScratch scratch;
    RowValues a, b;
    for (int64_t row = 0; row < kept.rows(); ++row) {
      kept.read_row(row, scratch, a);
      again.read_row(row, scratch, b);
      const RowLabels made = again.labels(row), labels = kept.labels(row);
      CHECK(LabelSet(made.begin(), made.end()) == LabelSet(labels.begin(), labels.end()));
      REQUIRE(a.all.size() == b.all.size());
      CHECK(a.words == b.words);
      for (size_t i = 0; i < a.all.size(); ++i) {
        CHECK(a.all[i].bucket == b.all[i].bucket);
        CHECK(a.all[i].value == b.all[i].value);
      }
    }
  }
}

/// What is minimised, and its gradient at the solution, over the largest of its terms: w' - 2 C sum_i max(0, 1 - y_i
/// f_i) y_i x'_i, for n-grams, scores of the base, and the bias.
struct Primal {
  double value = 0, gradient = 0;
};

Primal primal(const NgramRows& rows, const SvmProblem& problem, const SvmSolution& solution,
              const std::vector<float>& ratios) {
  const size_t buckets = ratios.size();
  std::vector<double> weights;
  for (size_t f = 0; f < buckets; ++f) {
    const auto factor = static_cast<double>(rows.scale()[f] * ratios[f]);
    weights.push_back(factor == 0 ? 0 : static_cast<double>(solution.weights[f]) / factor);
  }
  weights.insert(weights.end(), solution.base_weights.begin(), solution.base_weights.end());
  weights.push_back(static_cast<double>(solution.bias));
  std::vector<double> sums(weights.size(), 0);
  Primal found;
  for (const int64_t row : problem.rows) {
    const double y = rows.has(row, problem.positive) ? 1 : -1;
    const double slack = std::max(0.0, 1 - y * static_cast<double>(solution.score(rows, row)));
    const double step = 2 * problem.cost * slack * y;
    found.value += problem.cost * slack * slack;
    for (const int which : {0, 1}) {
      const NgramBlock block = rows.block(row, which);
      for (const NgramCount* entry = block.begin; entry != block.end; ++entry) {
        const uint32_t f = entry->bucket();
        sums[f] += step * static_cast<double>(block.norm * count_weight(entry->count()) * rows.scale()[f] * ratios[f]);
      }
    }
    for (size_t k = 0; k < solution.base_weights.size(); ++k)
      sums[buckets + k] += step * static_cast<double>(rows.base_scores(row)[k]);
    sums.back() += step;
  }
  double largest = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    found.value += weights[i] * weights[i] / 2;
    found.gradient = std::max(found.gradient, std::abs(weights[i] - sums[i]));
    largest = std::max(largest, std::abs(sums[i]));
  }
  found.gradient /= largest;
  return found;
}

void check_solutions(const std::shared_ptr<const BaseClassifier>& base) {
  const NgramRows rows = rows_of(sample_texts(300), 2, linear_config(), base);
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
      const Primal least = primal(rows, problem, solution, with_ratios ? ratios : ones);
      CHECK(least.gradient < 2e-3);
      problem.tolerance = SvmProblem().tolerance;
      const double usual = primal(rows, problem, solve_svm(rows, problem), with_ratios ? ratios : ones).value;
      CHECK(usual >= least.value * (1 - 1e-5));
      CHECK(usual < least.value * 1.005);
      CHECK(solution.base_weights.size() == (base == nullptr ? 0 : 3));
    }
}

TEST_CASE("dual coordinate descent: the gradient of the primal is zero at the solution, with and without a base") {
  check_solutions(nullptr);
  check_solutions(Solution(rows_of(sample_texts(200, 3), 3, linear_config()), 1).as_base());
}

TEST_CASE("dual coordinate descent: the intercept of n-grams is about 1 for all texts, and 0 for one without any") {
  std::vector<Text> texts = sample_texts(2000);
  texts.push_back({" ", 0});
  const NgramRows rows = rows_of(texts, 2, linear_config());
  const SvmSolution intercept = solve_intercept(rows, all_rows(rows), 1);
  double mean = 0;
  for (int64_t row = 0; row < 2000; ++row) mean += static_cast<double>(intercept.score(rows, row)) / 2000;
  CHECK(std::abs(mean - 1) < 0.1);
  CHECK(intercept.score(rows, 2000) == 0);
}

TEST_CASE("linear classifiers: what they learn, that held-out texts tell how well, and probabilities that are right") {
  for (const int32_t classes : {2, 3}) {
    std::vector<Text> texts = sample_texts(5000, classes);
    const std::vector<Text> unseen(texts.begin() + 4000, texts.end());
    texts.resize(4000);
    const Samples samples(texts);
    std::vector<double> accuracies;
    for (const Solver& solver : all_solvers) {
      INFO(classes, " classes, ", solver.name);
      const Solution solution(NgramRows(samples.texts(), linear_config(1 << 14), classes, nullptr, solver.budget), 1);
      accuracies.push_back(solution.accuracy(unseen));
      CHECK(accuracies.back() > 0.8);
      CHECK(accuracies.back() > accuracies.front() - 0.02);
      const Evaluation& held_out = solution.fit.held_out;
      CHECK(held_out.targets == (accuracies.size() == 1 ? 4000 : 400));
      CHECK(std::abs(accuracies.back() - held_out.accuracy()) < 0.05);
      CHECK(held_out.loss() < 0.5);
      double loss = 0;
      for (const Text& text : unseen) loss -= std::log(solution.probability(text.text, text.label)) / 1000;
      CHECK(loss == doctest::Approx(held_out.loss()).epsilon(0.25));
      double sum = 0;
      for (int32_t c = 0; c < classes; ++c) {
        double share = 1;
        for (const Text& text : texts) share += text.label == c ? 1 : 0;
        CHECK(solution.probability("", c) == doctest::Approx(share / (4000.0 + classes)).epsilon(1e-4));
        sum += solution.probability("goal", c);
      }
      CHECK(sum == doctest::Approx(1));
    }
  }
}

TEST_CASE("linear classifiers: a text has any number of labels, each from a threshold of its own") {
  // Of two labels, neither is the other's opposite: texts have both, one or none. 40 are more than a vector
  // instruction has room for.
  struct LabelCase {
    int32_t labels, texts;
    double share_of_first, share;  // of the texts that have a label
    RowBudget budget;
  };
  for (const LabelCase& c : {LabelCase{2, 300, 0.5, 0.1, {}}, {40, 3000, 0.05, 0.05, kept_for_adagrad}}) {
    INFO(c.labels, " labels");
    ExampleSet examples = ExampleSet::multi_label(c.labels);
    const ByteTokenizer tokenizer;
    RandomStream random(random_key(8, "several labels"));
    for (int i = 0; i < c.texts; ++i) {
      std::string text = "today" + std::string(static_cast<size_t>(i), ' ');  // or most would be copies
      LabelSet labels;
      for (int32_t label = 0; label < c.labels; ++label)
        if (random.uniform() < (label == 0 ? c.share_of_first : c.share)) {
          labels.push_back(label);
          text += fmt::format(" topic{0} team{0}", label);
        }
      examples.add(tokenizer.encode(text), labels);
    }
    const LabelledTexts texts(examples, tokenizer);
    const NgramRows rows(texts, linear_config(1 << 14), c.labels, nullptr, c.budget);
    const Solution solution(rows, 1);
    const LinearClassifier& linear = *solution.linear;
    REQUIRE(solution.fit.labels);
    CHECK(solution.fit.labels->all.f1() > 0.9);
    for (size_t label = 0; label < static_cast<size_t>(c.labels); ++label)
      CHECK(solution.fit.labels->thresholds[label] == doctest::Approx(linear.thresholds()[label]));
    const auto found = evaluate_classifier(linear, texts);
    REQUIRE(found.labels);
    CHECK(found.labels->macro_f1() > 0.9);
    CHECK(found.total.accuracy() == found.labels->accuracy());
    for (const auto& [text, has_first] : {std::pair("topic0 team1 team0 topic1", true), {"today", false}})
      CHECK(reaches(static_cast<float>(solution.probability(text, 0)), linear.thresholds()[0]) == has_first);
    for (int32_t label = 0; label < c.labels; ++label) {  // a text of which nothing is known has the shares
      int64_t with = 1;
      for (int64_t i = 0; i < rows.rows(); ++i) with += rows.has(i, label) ? 1 : 0;
      CHECK(solution.probability("", label) ==
            doctest::Approx(static_cast<double>(with) / (c.texts + 2)).epsilon(1e-4));
    }
  }
}

TEST_CASE("linear classifiers: copies of a text are in one fold, so that cross-validation is not better with them") {
  for (const RowBudget budget : {RowBudget(), kept_for_adagrad}) {
    const std::vector<Text> once = sample_texts(400, 3);
    std::vector<Text> twice = once;
    twice.insert(twice.end(), once.begin(), once.end());
    twice.push_back({once[0].text, (once[0].label + 1) % 3});
    const Samples samples(twice), single(once);
    const NgramRows rows(samples.texts(), linear_config(), 3, nullptr, budget);
    CHECK(rows.copies().size() >= 401);
    const std::vector<int32_t> folds = folds_of_rows(rows, 5);
    for (size_t i = 0; i < 400; ++i) CHECK(folds[i] == folds[i + 400]);
    CHECK(folds[800] == folds[0]);
    const auto first = std::vector<int32_t>(folds.begin(), folds.begin() + 400);
    CHECK(folds_of_rows(NgramRows(single.texts(), linear_config(), 3, nullptr, budget), 5) == first);
    const double of_once = Solution(NgramRows(single.texts(), linear_config(), 3, nullptr, budget), 1)
                               .fit.held_out.accuracy(),
                 of_twice = Solution(rows, 1).fit.held_out.accuracy();
    CHECK(of_twice < of_once + 0.03);
  }
}

TEST_CASE("linear classifiers: the same bits on any number of threads, others with another seed") {
  const int before = threads();
  for (const int32_t classes : {2, 3}) {
    const Samples samples(sample_texts(1500, classes));
    std::vector<std::vector<real>> found;
    for (const Solver& solver : all_solvers) {
      INFO(classes, " classes, ", solver.name);
      const NgramRows rows(samples.texts(), linear_config(), classes, nullptr, solver.budget);
      set_threads(1);
      found.push_back(Solution(rows, 1).values());
      for (const int count : {2, 3}) {
        set_threads(count);
        CHECK(Solution(rows, 1).values() == found.back());
      }
      CHECK(Solution(rows, 2).values() != found.back());
    }
    CHECK(found[2] == found[1]);
  }
  set_threads(before);
}

TEST_CASE("linear classifiers: few texts, a class that is alone, texts without n-grams") {
  const std::vector<std::vector<Text>> sets{
      {{"good", 1}, {"bad", 0}},  {{"good", 1}, {"bad", 0}, {"fine", 2}},
      {{"good", 1}, {" ", 0}},    {{" ", 1}, {" ", 0}, {"\n", 1}},
      {{"same", 1}, {"same", 0}},
  };
  LinearClassifierConfig config = linear_config(0);
  config.min_texts = 0;
  for (const auto& texts : sets)
    for (const Solver& solver : all_solvers) {
      INFO(texts.front().text, ", ", texts.size(), " texts, ", solver.name);
      const Samples samples(texts);
      const int64_t classes = texts.size() == 3 && texts[2].label == 2 ? 3 : 2;
      config.buckets = solver.budget.solved > 1 ? 0 : 1 << 14;
      const Solution solution(NgramRows(samples.texts(), config, classes, nullptr, solver.budget), 1);
      for (const real value : solution.values()) CHECK(std::isfinite(value));
      if (solver.budget.solved > 1 && texts.front().text == "good" && texts[1].text == "bad")
        CHECK(solution.accuracy(texts) == 1);
    }
  // A class that the data name, but no text has.
  const Solution solution(rows_of(sample_texts(50), 4, linear_config(0)), 1);
  CHECK(solution.predict("goal team") == 0);
}

TEST_CASE("linear classifiers: the solver stops between a few rows of a pass") {
  const NgramRows rows = rows_of(sample_texts(2000), 2, linear_config());
  const SvmProblem problem{all_rows(rows), 1, 1, true, random_key(1, "order")};
  for (const int allowed : {0, 1, 2500, 4050}) {  // the ratios, then the diagonal ask for each row
    INFO(allowed);
    StopAfter limit(allowed);
    const StopScope scope(&limit.poll);
    CHECK_THROWS_AS(solve_svm(rows, problem), Stopped);
    CHECK(limit.asked == allowed + 1);
  }
  StopAfter endless(no_end);
  const StopScope scope(&endless.poll);
  solve_svm(rows, problem);
  CHECK(endless.asked >= 4000 + 2 * 2000 / 16);
}

TEST_CASE("linear classifiers: reading, all that finds weights, and the evaluation stop when they are asked") {
  const Samples samples(sample_texts(300, 3));
  for (const Solver& solver : all_solvers) {
    const NgramRows rows(samples.texts(), linear_config(), 3, nullptr, solver.budget);
    ParamStore store;
    const LinearClassifier linear(Scope(store, 1), rows.config(), 3);
    store.finalize();
    StopAfter endless(no_end);
    {
      const StopScope scope(&endless.poll);
      fit_linear(rows, store, 1);
    }
    for (int64_t twentieth = 0; twentieth < 20; ++twentieth) {
      INFO(solver.name, ", ", twentieth, " of 20");
      StopAfter limit(endless.asked * twentieth / 20);
      const StopScope scope(&limit.poll);
      CHECK_THROWS_AS(fit_linear(rows, store, 1), Stopped);
    }
    StopAfter none(0), some(100);
    const StopScope reading(&none.poll);
    CHECK_THROWS_AS(NgramRows(samples.texts(), linear_config(), 3), Stopped);
    const StopScope evaluation(&some.poll);
    CHECK_THROWS_AS(evaluate_classifier(linear, samples.texts()), Stopped);
  }
}

}  // namespace
}  // namespace capstan::testing
