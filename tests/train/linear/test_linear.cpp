// Solving for linear classifiers over n-grams.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "core/machine/parallel.hpp"
#include "data/tokenizers/byte_tokenizer.hpp"
#include "train/linear/dual_svm.hpp"
#include "train/linear/fit_linear.hpp"

namespace capstan::testing {
namespace {

struct Text {
  std::string text;
  int32_t label;
};

/// About two topics; some texts have words of both, and a few labels are wrong.
std::vector<Text> sample_texts(int count, int32_t classes = 2) {
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

ExampleSet examples_of(const std::vector<Text>& texts) {
  ExampleSet examples;
  for (const Text& text : texts) examples.add(ByteTokenizer().encode(text.text), text.label);
  return examples;
}

std::string as_text(const std::vector<int32_t>& tokens) { return {tokens.begin(), tokens.end()}; }

NgramLinearConfig config_of(int64_t buckets = 1024) {
  NgramLinearConfig config;
  config.words = {1, 2};
  config.characters = {3};
  config.buckets = buckets;
  config.min_texts = 2;
  return config;
}

NgramRows rows_of(const std::vector<Text>& texts, int64_t classes, const NgramLinearConfig& config,
                  int64_t batch_size = 7, std::shared_ptr<const BaseClassifier> base = nullptr) {
  const ExampleSet examples = examples_of(texts);
  return {BucketedBatches(examples, {batch_size, 0}, 1), as_text, config, classes, std::move(base)};
}

/// A model's parameters, as TextClassifier makes them.
struct Solution {
  ParamStore store;
  std::unique_ptr<NgramLinear> linear;
  std::optional<LinearFit> fit;

  Solution(const NgramRows& rows, uint64_t seed) {
    linear = std::make_unique<NgramLinear>(Scope(store, seed) / "linear", rows.config(), rows.classes());
    store.finalize();
    fit = fit_linear(rows, store, seed);
  }
  int32_t predict(const std::string& text) const {
    std::vector<real> logits(static_cast<size_t>(linear->classes()), 0);
    linear->add_logits(text, logits.data());
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
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

std::vector<int64_t> all_rows(const NgramRows& rows) {
  std::vector<int64_t> all;
  for (int64_t row = 0; row < rows.rows(); ++row) all.push_back(row);
  return all;
}

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

TEST_CASE("rows of n-grams: the size of batches makes no difference, and the number of buckets follows the texts") {
  const std::vector<Text> texts = sample_texts(200);
  const NgramRows rows = rows_of(texts, 2, config_of(0), 7), other = rows_of(texts, 2, config_of(0), 64);
  CHECK(rows.config().buckets == other.config().buckets);
  CHECK(rows.entries() == other.entries());
  CHECK(rows.scale() == other.scale());
  const int64_t ngrams = std::count_if(rows.scale().begin(), rows.scale().end(), [](float s) { return s > 0; });
  CHECK(rows.config().buckets >= 3 * ngrams);
  CHECK(rows.config().buckets <= 10 * ngrams);
  const Solution a(rows, 1), b(other, 1);
  CHECK(a.values() == b.values());
}

TEST_CASE("rows of n-grams: those of characters are left out where memory is short, those of words are an error") {
  const ExampleSet examples = examples_of(sample_texts(200));
  const BucketedBatches batches(examples, {8, 0}, 1);
  const auto bytes = [&](const NgramLinearConfig& config) {
    return 4 * NgramRows(batches, as_text, config, 2).entries();
  };
  NgramLinearConfig config = config_of(), words = config_of();
  words.characters.clear();
  REQUIRE(bytes(words) < bytes(config));
  const NgramRows rows(batches, as_text, config, 2, nullptr, (bytes(words) + bytes(config)) / 2);
  CHECK(rows.config().characters.empty());
  CHECK(rows.config().words == config.words);
  try {
    NgramRows(batches, as_text, config, 2, nullptr, 100);
    FAIL("too little memory was accepted");
  } catch (const std::exception& error) {
    CHECK(std::string(error.what()).find("model.linear") != std::string::npos);
  }
}

/// The gradient of the primal at the solution, over the largest of its terms: w' - 2 C sum_i max(0, 1 - y_i f_i) y_i x'_i.
double primal_gradient(const NgramRows& rows, const SvmProblem& problem, const SvmSolution& solution,
                       const std::vector<float>& ratios) {
  std::vector<double> sums(rows.scale().size() + 1, 0);
  for (const int64_t row : problem.rows) {
    const double y = rows.label(row) == problem.positive ? 1 : -1;
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
      const double y = rows.label(row) == problem.positive ? 1 : -1;
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
    const double y = rows.label(row) == problem.positive ? 1 : -1;
    sum += problem.cost * std::pow(std::max(0.0, 1 - y * static_cast<double>(solution.score(rows, row))), 2);
  }
  return sum;
}

void check_solutions(const std::vector<Text>& texts, const std::shared_ptr<const BaseClassifier>& base) {
  const NgramRows rows = rows_of(texts, 2, config_of(), 7, base);
  // Log-count ratios, from their definition.
  std::vector<float> ones(rows.scale().size(), 1), ratios = ones;
  std::vector<double> p(ratios.size(), 1), q = p;
  for (int64_t row = 0; row < rows.rows(); ++row)
    for (const int which : {0, 1}) {
      const NgramBlock block = rows.block(row, which);
      for (const NgramCount* entry = block.begin; entry != block.end; ++entry)
        (rows.label(row) == 1 ? p : q)[entry->bucket()] += 1;
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
      REQUIRE(solution);
      CHECK(primal_gradient(rows, problem, *solution, with_ratios ? ratios : ones) < 2e-3);
      const double least = primal(rows, problem, *solution, with_ratios ? ratios : ones);
      problem.tolerance = SvmProblem().tolerance;
      const double usual = primal(rows, problem, *solve_svm(rows, problem), with_ratios ? ratios : ones);
      CHECK(usual >= least * (1 - 1e-5));
      CHECK(usual < least * 1.005);
      CHECK(solution->base_weights.size() == (base == nullptr ? 0 : 3));
    }
}

TEST_CASE("dual coordinate descent: the gradient of the primal is zero at the solution") {
  check_solutions(sample_texts(300), nullptr);
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
    REQUIRE(solution.fit);
    CHECK(solution.fit->held_out.targets == 500);
    const double accuracy = solution.accuracy(unseen);
    CHECK(accuracy > 0.8);
    CHECK(std::abs(accuracy - solution.fit->held_out.accuracy()) < 0.06);
    CHECK(solution.fit->held_out.loss() < 0.5);
  }
}

TEST_CASE("a base classifier: its n-grams keep their scale, its scores have one deviation and are those of its model") {
  const Solution base(rows_of(sample_texts(200, 3), 3, config_of()), 1);
  std::vector<Text> texts = sample_texts(100);
  for (Text& text : texts) text.text += " novel novelty";
  const ExampleSet examples = examples_of(texts);
  const NgramRows rows(OrderedBatches(examples, {7, 0}), as_text, config_of(), 2, base.as_base()),
      alone = rows_of(texts, 2, config_of());
  const std::vector<float> known = base.values("linear.scale");
  for (size_t f = 0; f < known.size(); ++f) CHECK(rows.scale()[f] == (known[f] != 0 ? known[f] : alone.scale()[f]));
  CHECK(rows.base_factor().size() == 3);
  // A model of the base's weights and of the rows' scale.
  ParamStore store;
  const NgramLinear joined(Scope(store, 1) / "linear", rows.config(), 3);
  store.finalize();
  const auto copy = [&](const std::string& name, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), store.values() + store.find(name).offset);
  };
  copy("linear.scale", rows.scale());
  copy("linear.weight", base.values("linear.weight"));
  copy("linear.bias", base.values("linear.bias"));
  double sum = 0, squares = 0;
  for (int64_t row = 0; row < rows.rows(); ++row) {
    real logits[3] = {};
    joined.add_logits(texts[static_cast<size_t>(row)].text, logits);
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

TEST_CASE(
    "a base classifier: words that the new texts do not have keep their meaning, whatever the classes are called") {
  const Solution base(rows_of(sample_texts(600, 3), 3, config_of()), 1);
  // The last topic or another one, from texts without two words of each topic.
  const auto is_known = [](const Text& text) {
    for (const char* const word : {"goal", "team", "stock", "bank", "planet", "star"})
      if (text.text.find(word) != std::string::npos) return false;
    return true;
  };
  std::vector<Text> train, unseen;
  const std::vector<Text> texts = sample_texts(2600, 3);
  for (size_t i = 600; i < texts.size(); ++i)
    (is_known(texts[i]) ? train : unseen).push_back({texts[i].text, texts[i].label == 2 ? 0 : 1});
  REQUIRE(train.size() > 100);
  const Solution alone(rows_of(train, 2, config_of()), 1), from(rows_of(train, 2, config_of(), 7, base.as_base()), 1);
  CHECK(from.accuracy(unseen) > 0.85);
  CHECK(from.accuracy(unseen) > alone.accuracy(unseen) + 0.02);
  CHECK(from.accuracy(train) > 0.85);
}

TEST_CASE("linear classifiers: the factor of the logits gives the lowest cross entropy") {
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
    const ExampleSet examples = examples_of(texts);
    const Solution solution({OrderedBatches(examples, {7, 0}), as_text, config_of(), 2}, 1);
    REQUIRE(solution.fit);
    const double p = 1.0 / one_in, entropy = -p * std::log(p) - (1 - p) * std::log(1 - p);
    CHECK(solution.fit->held_out.loss() == doctest::Approx(entropy).epsilon(1e-4));
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
  NgramLinearConfig config = config_of(0);
  config.min_texts = 0;
  for (const auto& texts : sets) {
    const int64_t classes = texts.size() == 3 && texts[2].label == 2 ? 3 : 2;
    const Solution solution(rows_of(texts, classes, config), 1);
    REQUIRE(solution.fit);
    for (const real value : solution.values()) CHECK(std::isfinite(value));
    if (texts.front().text == "good" && texts[1].text == "bad") CHECK(solution.accuracy(texts) == 1);
  }
  // A class that the data name, but no text has.
  const Solution solution(rows_of(sample_texts(50), 4, config_of(0)), 1);
  CHECK(solution.predict("goal team") == 0);
}

TEST_CASE("linear classifiers: a request to stop is met") {
  const NgramRows rows = rows_of(sample_texts(100), 2, config_of());
  ParamStore store;
  const NgramLinear linear(Scope(store, 1) / "linear", rows.config(), 2);
  store.finalize();
  CHECK_FALSE(fit_linear(rows, store, 1, [] { return true; }));
}

}  // namespace
}  // namespace capstan::testing
