// Hashed n-grams as part of a token's embedding.

#include <cmath>

#include "nn/layers/ngram_embedding.hpp"
#include "tests/nn/layers/ngram_cases.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

constexpr int64_t model_width = ngram_outputs;
const double tolerance = sizeof(real) == 4 ? 1e-5 : 1e-12;
const std::vector<int32_t>& embedded_text = ngram_text;

using Embedding = BuiltNgrams<NgramEmbedding>;

NgramEmbeddingConfig embedding_config_of(const std::vector<int64_t>& orders) {
  return ngram_config<NgramEmbeddingConfig>(orders);
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
    const Embedding built(config);
    const Ids ids({1, 10}, std::vector<int32_t>{0, 1, 1, 1, 1, 1, 2, 2, 2, 0});
    const Array y = built(Context{Segments(ids)}).reshape({10, model_width});
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
  const Embedding built(embedding_config_of({2, 3}));
  const Array before = built().reshape({10, model_width});
  std::vector<int32_t> changed = embedded_text;
  changed[6] = 5;
  const Array after = built(Ids({1, 10}, changed), Context::evaluation(1, 10)).reshape({10, model_width});
  CHECK(before.rows(0, 6).to_vector() == after.rows(0, 6).to_vector());
  for (const int64_t t : {6, 7, 8}) CHECK(before.rows(t, t + 1).to_vector() != after.rows(t, t + 1).to_vector());
  CHECK(before.rows(9, 10).to_vector() == after.rows(9, 10).to_vector());  // beyond the longest n-gram
}

TEST_CASE("n-gram embedding: decoding needs the last tokens only") {
  const Embedding built(embedding_config_of({1, 4, 2}));
  CHECK(built.layer->memory() == 3);
  const Array whole = built().reshape({10, model_width});
  for (int64_t t = 0; t < 10; ++t) {
    const std::vector<int32_t> recent(embedded_text.begin() + std::max<int64_t>(0, t - 3), embedded_text.begin() + t);
    for (int64_t count = 1; t + count <= 10; ++count) {
      const Ids next({1, count}, std::vector<int32_t>(embedded_text.begin() + t, embedded_text.begin() + t + count));
      CHECK(relative_error(built.layer->next(next, {recent}, nullptr).value().reshape({count, model_width}),
                           whole.rows(t, t + count), 1e-3) < tolerance);
    }
  }
}

TEST_CASE("n-gram embedding: dropout keeps the expected sum, and padding and batch mates do not change it") {
  NgramEmbeddingConfig config = embedding_config_of({1, 2, 3});
  config.dropout = 0.3;
  const Embedding built(config);
  const auto at_step = [&](uint64_t step) { return built({Segments::full(1, 10), true, step, Ids({1}, 6)}); };
  check_mean_of_dropout(built);
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
  const Embedding fresh(embedding_config_of({2}), /*drawn=*/false);
  for (const real number : fresh().to_vector()) CHECK(number == 0);
  Embedding built(embedding_config_of({2}));
  check_named_rows(built);
}

TEST_CASE("n-gram embedding: what cannot be is refused") {
  ParamStore store;
  CHECK_THROWS_AS(NgramEmbedding(Scope(store, 1), embedding_config_of({}), model_width), std::invalid_argument);
  const Embedding built(embedding_config_of({1}));
  CHECK_THROWS_AS(built(Ids({1, 4}, 1), Context::evaluation(1, 5)), std::invalid_argument);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
