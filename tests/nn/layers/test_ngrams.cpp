// Hashed n-grams as features of a text.

#include <cmath>
#include <map>

#include "nn/layers/ngram_features.hpp"
#include "tests/nn/layers/ngram_cases.hpp"
#include "tests/support/ragged.hpp"
#include "tests/support/texts.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

using Features = BuiltNgrams<NgramFeatures>;

NgramConfig config_of(const std::vector<int64_t>& orders) { return ngram_config<NgramConfig>(orders); }

const std::vector<int32_t>& text = ngram_text;

/// O * scale / sqrt(n) * sum over the n-grams of one document, from the definition.
std::vector<double> expected(const ParamStore& store, const NgramConfig& config, const std::vector<int32_t>& tokens) {
  const Array table = store.find("table").var.value(), output = store.find("output.weight").var.value();
  std::vector<double> sum(static_cast<size_t>(config.width), 0), y(3, 0);
  double count = 0;
  for (const int64_t order : config.orders)
    for (size_t begin = 0; begin + static_cast<size_t>(order) <= tokens.size(); ++begin, ++count)
      for (int64_t c = 0; c < config.width; ++c)
        sum[static_cast<size_t>(c)] +=
            static_cast<double>(table[ngram_bucket(tokens.data() + begin, order, config.buckets) * config.width + c]);
  for (size_t k = 0; k < 3; ++k)
    for (size_t c = 0; c < sum.size() && count > 0; ++c)
      y[k] += static_cast<double>(output[static_cast<int64_t>(k * sum.size() + c)]) * sum[c] * config.scale /
              std::sqrt(count);
  return y;
}

TEST_CASE("n-grams: the bucket is a fixed hash of tokens and order, and spreads evenly") {
  // Weights on disk depend on these.
  const int32_t tokens[] = {1, 2, 3};
  CHECK(ngram_bucket(tokens, 1, 200000) == 74478);
  CHECK(ngram_bucket(tokens, 2, 200000) == 162975);
  CHECK(ngram_bucket(tokens, 3, 2000000000) == 1444450011);
  CHECK(ngram_bucket(tokens, 3, 1) == 0);
  const int32_t reversed[] = {2, 1};
  CHECK(ngram_bucket(reversed, 2, 1 << 30) != ngram_bucket(tokens, 2, 1 << 30));
  std::map<int32_t, int> counts;
  for (int32_t a = 0; a < 100; ++a)
    for (int32_t b = 0; b < 100; ++b) {
      const int32_t pair[] = {a, b};
      ++counts[ngram_bucket(pair, 2, 100)];
    }
  double chi = 0;  // of 99 degrees of freedom: mean 99, standard deviation 14
  for (const auto& [bucket, count] : counts) chi += (count - 100.0) * (count - 100.0) / 100;
  CHECK(counts.size() == 100);
  CHECK(chi < 99 + 5 * 14);
}

TEST_CASE("n-grams: features are what the definition says, for every order and in two documents of a row") {
  for (const std::vector<int64_t>& orders : {std::vector<int64_t>{1}, {2}, {1, 2}, {3, 1}, {11}}) {
    const NgramConfig config = config_of(orders);
    const Features built(config);
    const auto close = [&](const Array& y, const std::vector<double>& wanted) {
      for (int64_t k = 0; k < 3; ++k)
        CHECK(static_cast<double>(y[k]) ==
              doctest::Approx(wanted[static_cast<size_t>(k)]).epsilon(sizeof(real) == 4 ? 1e-5 : 1e-12));
    };
    close(built(), expected(built.store, config, text));
    // Two documents and padding: no n-gram crosses, the sum is over both.
    Ids ids({1, 10}, std::vector<int32_t>{1, 1, 1, 1, 2, 2, 2, 0, 0, 0});
    const auto first = expected(built.store, config, {text.begin(), text.begin() + 4}),
               second = expected(built.store, config, {text.begin() + 4, text.begin() + 7});
    double n1 = 0, n2 = 0;
    for (const int64_t order : orders) {
      n1 += static_cast<double>(std::max<int64_t>(0, 4 - order + 1));
      n2 += static_cast<double>(std::max<int64_t>(0, 3 - order + 1));
    }
    std::vector<double> both(3, 0);
    for (size_t k = 0; k < 3 && n1 + n2 > 0; ++k)
      both[k] = (first[k] * std::sqrt(n1) + second[k] * std::sqrt(n2)) / std::sqrt(n1 + n2);
    close(built(Context{Segments(ids)}), both);
  }
}

TEST_CASE("n-grams: padding and batch mates change nothing, dropout included") {
  NgramConfig config = config_of({1, 2});
  for (const double rate : {0.0, 0.4}) {
    config.dropout = rate;
    const Features built(config);
    Ids tokens({3, 12}, 8), examples({3}, std::vector<int32_t>{5, 6, 7});
    std::copy(text.begin(), text.end(), tokens.mutable_data() + 12);
    const Context together{segments_of_lengths({12, 10, 0}, 12), true, 4, examples};
    const Array all = built(tokens, together);
    Ids padded({1, 15}, 1), ids({1, 15}, 0);
    std::copy(text.begin(), text.end(), padded.mutable_data() + 3);  // padding on both sides
    std::fill_n(ids.mutable_data() + 3, 10, 1);
    const Context alone{Segments(ids), true, 4, Ids({1}, 6)};
    CHECK(relative_error(built(padded, alone), all.rows(1, 2)) < (sizeof(real) == 4 ? 1e-6 : 1e-14));
    for (int64_t k = 0; k < 3; ++k) CHECK(all[6 + k] == 0);  // no tokens
    Context later = alone, other = alone;
    later.step = 5;
    other.examples = Ids({1}, 7);
    const Array here = built(padded, alone);
    CHECK((relative_error(built(padded, later), here) > 1e-3) == (rate > 0));
    CHECK((relative_error(built(padded, other), here) > 1e-3) == (rate > 0));
    later.training = false;
    CHECK((relative_error(built(padded, later), here) > 1e-3) == (rate > 0));
  }
}

TEST_CASE("n-grams: dropout keeps the expected sum") {
  NgramConfig config = config_of({1});
  config.dropout = 0.3;
  const Features built(config);
  check_mean_of_dropout(built);
}

TEST_CASE("n-grams: a text whose n-grams were never seen says nothing") {
  const Features built(config_of({1, 2}), /*drawn=*/false);
  for (const real number : built().to_vector()) CHECK(number == 0);
  double squares = 0;
  for (const real weight : built.store.find("output.weight").var.value().to_vector())
    squares += static_cast<double>(weight * weight);
  CHECK(squares > 0);  // or the table would never learn
}

TEST_CASE("n-grams: only rows that were named have a gradient") {
  Features built(config_of({2}));
  check_named_rows(built);
}

TEST_CASE("n-grams: what cannot be is refused") {
  ProblemText problems("model.ngrams");
  validate(config_of({0, 2, 2, 17}), problems);
  check_contains(problems.text(), {"orders.0: an n-gram has from 1 to 16 tokens, not 0", "orders.1: 2 is listed twice",
                                   "orders.3: an n-gram"});
  const Features built(config_of({1}));
  CHECK_THROWS_AS(built(Ids({1, 4}, 1), Context::evaluation(1, 5)), std::invalid_argument);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
