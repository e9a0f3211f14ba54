// Hashed n-grams as part of a token's embedding.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "core/autograd/tape.hpp"
#include "nn/layers/ngram_embedding.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/weights.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

constexpr int64_t model_width = 3;
const double tolerance = sizeof(real) == 4 ? 1e-5 : 1e-12;
const std::vector<int32_t> embedded_text{4, 9, 4, 9, 9, 2, 7, 0, 11, 3};

struct BuiltEmbedding {
  ParamStore store;
  std::unique_ptr<NgramEmbedding> embedding;

  explicit BuiltEmbedding(const NgramEmbeddingConfig& config, bool drawn = true) {
    embedding = std::make_unique<NgramEmbedding>(Scope(store, 1), config, model_width);
    if (drawn) redraw(store);
    store.finalize();
  }
  Array operator()(const Ids& tokens, const Context& context) const { return (*embedding)(tokens, context).value(); }
};

NgramEmbeddingConfig embedding_config_of(std::vector<int64_t> orders) {
  NgramEmbeddingConfig config;
  config.orders = std::move(orders);
  config.buckets = 101;
  config.width = 5;
  config.scale = 1.5;
  return config;
}

/// The embedding of a document's last token, from the definition.
Array expected(const ParamStore& store, const NgramEmbeddingConfig& config, const std::vector<int32_t>& document) {
  const Array table = store.find("table").var.value(), output = store.find("output.weight").var.value();
  std::vector<double> sum(static_cast<size_t>(config.width), 0);
  const auto length = static_cast<int64_t>(document.size());
  for (const int64_t order : config.orders)
    for (int64_t c = 0; order <= length && c < config.width; ++c)
      sum[static_cast<size_t>(c)] += static_cast<double>(
          table[ngram_bucket(document.data() + length - order, order, config.buckets) * config.width + c]);
  Array y = Array::zeros(Shape{1, model_width});
  for (int64_t d = 0; d < model_width; ++d)
    for (int64_t c = 0; c < config.width; ++c)
      y.mutable_data()[d] +=
          static_cast<real>(static_cast<double>(output[d * config.width + c]) * sum[static_cast<size_t>(c)] *
                            config.scale / std::sqrt(static_cast<double>(config.orders.size())));
  return y;
}

TEST_CASE("n-gram embedding: what the definition says, in every document of a row, and nothing at padding") {
  for (const std::vector<int64_t>& orders : {std::vector<int64_t>{1}, {2}, {2, 3, 4}, {5, 1}, {16}}) {
    const NgramEmbeddingConfig config = embedding_config_of(orders);
    const BuiltEmbedding built(config);
    const Ids ids({1, 10}, std::vector<int32_t>{0, 1, 1, 1, 1, 1, 2, 2, 2, 0});
    const Array y = built(Ids({1, 10}, embedded_text), Context{Segments(ids)}).reshape({10, model_width});
    for (const int64_t begin : {1, 6})
      for (int64_t t = begin; t < (begin == 1 ? 6 : 9); ++t)
        CHECK(relative_error(
                  y.rows(t, t + 1),
                  expected(built.store, config, {embedded_text.begin() + begin, embedded_text.begin() + t + 1}),
                  1e-3) < tolerance);
    for (const int64_t t : {0, 9})
      for (const real number : y.rows(t, t + 1).to_vector()) CHECK(number == 0);
  }
}

TEST_CASE("n-gram embedding: a later token changes nothing before it") {
  const BuiltEmbedding built(embedding_config_of({2, 3}));
  const Array before = built(Ids({1, 10}, embedded_text), Context::evaluation(1, 10)).reshape({10, model_width});
  std::vector<int32_t> changed = embedded_text;
  changed[6] = 5;
  const Array after = built(Ids({1, 10}, changed), Context::evaluation(1, 10)).reshape({10, model_width});
  CHECK(before.rows(0, 6).to_vector() == after.rows(0, 6).to_vector());
  for (const int64_t t : {6, 7, 8}) CHECK(before.rows(t, t + 1).to_vector() != after.rows(t, t + 1).to_vector());
  CHECK(before.rows(9, 10).to_vector() == after.rows(9, 10).to_vector());  // beyond the longest n-gram
}

TEST_CASE("n-gram embedding: decoding needs the last tokens only") {
  const BuiltEmbedding built(embedding_config_of({1, 4, 2}));
  CHECK(built.embedding->memory() == 3);
  const Array whole = built(Ids({1, 10}, embedded_text), Context::evaluation(1, 10)).reshape({10, model_width});
  for (int64_t t = 0; t < 10; ++t) {
    const std::vector<int32_t> recent(embedded_text.begin() + std::max<int64_t>(0, t - 3), embedded_text.begin() + t);
    for (int64_t count = 1; t + count <= 10; ++count) {
      const Ids next({1, count}, std::vector<int32_t>(embedded_text.begin() + t, embedded_text.begin() + t + count));
      CHECK(relative_error(built.embedding->next(next, {recent}, nullptr).value().reshape({count, model_width}),
                           whole.rows(t, t + count), 1e-3) < tolerance);
    }
  }
}

TEST_CASE("n-gram embedding: dropout keeps the expected sum, and padding and batch mates do not change it") {
  NgramEmbeddingConfig config = embedding_config_of({1, 2, 3});
  config.dropout = 0.3;
  const BuiltEmbedding built(config);
  const auto at_step = [&](uint64_t step) {
    return built(Ids({1, 10}, embedded_text), {Segments::full(1, 10), true, step, Ids({1}, 6)});
  };
  const std::vector<real> whole = built(Ids({1, 10}, embedded_text), Context::evaluation(1, 10)).to_vector();
  std::vector<double> mean(whole.size(), 0);
  constexpr int draws = 4000;
  for (int step = 0; step < draws; ++step) {
    const std::vector<real> y = at_step(static_cast<uint64_t>(step)).to_vector();
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += static_cast<double>(y[i]) / draws;
  }
  double largest = 0, difference = 0;
  for (size_t i = 0; i < mean.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(whole[i])));
    difference = std::max(difference, std::abs(mean[i] - static_cast<double>(whole[i])));
  }
  CHECK(difference < 0.06 * largest);
  CHECK(at_step(1).to_vector() != at_step(2).to_vector());

  Ids tokens({2, 13}, 8), ids({2, 13}, 0);
  std::copy(embedded_text.begin(), embedded_text.end(), tokens.mutable_data() + 13 + 2);  // padding on both sides
  std::fill_n(ids.mutable_data() + 13 + 2, 10, 1);
  std::fill_n(ids.mutable_data(), 13, 1);
  const Context together{Segments(ids), true, 1, Ids({2}, std::vector<int32_t>{5, 6})};
  const Array both = built(tokens, together).reshape({26, model_width});
  CHECK(relative_error(both.rows(15, 25), at_step(1).reshape({10, model_width}), 1e-3) < tolerance);
}

TEST_CASE("n-gram embedding: starts as nothing, and only rows that were named have a gradient") {
  const NgramEmbeddingConfig config = embedding_config_of({2});
  const BuiltEmbedding fresh(config, /*drawn=*/false);
  for (const real number : fresh(Ids({1, 10}, embedded_text), Context::evaluation(1, 10)).to_vector())
    CHECK(number == 0);
  const BuiltEmbedding built(config);
  const Param& table = built.store.find("table");
  CHECK(table.options.by_rows);
  TapeScope scope;
  const Var y = (*built.embedding)(Ids({1, 10}, embedded_text), Context::evaluation(1, 10));
  scope.tape().backward(std::vector<Var>{y}, {Array(y.shape(), real{1})});
  std::set<int64_t> named;
  for (size_t i = 0; i + 2 <= embedded_text.size(); ++i)
    named.insert(ngram_bucket(embedded_text.data() + i, 2, config.buckets));
  const RowGrads& grads = built.store.row_grads(table);
  CHECK(grads.rows() == std::vector<int64_t>(named.begin(), named.end()));
  for (int64_t i = 0; i < grads.values().size(); ++i) CHECK(grads.values()[i] != 0);
}

TEST_CASE("n-gram embedding: what cannot be is refused") {
  ParamStore store;
  CHECK_THROWS_AS(NgramEmbedding(Scope(store, 1), embedding_config_of({}), model_width), std::invalid_argument);
  const BuiltEmbedding built(embedding_config_of({1}));
  CHECK_THROWS_AS(built(Ids({1, 4}, 1), Context::evaluation(1, 5)), std::invalid_argument);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
