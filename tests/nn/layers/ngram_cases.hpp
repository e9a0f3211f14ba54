// What the tests of the layers with hashed n-grams share.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include "core/autograd/tape.hpp"
#include "nn/layers/text_ngrams.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/weights.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

constexpr int64_t ngram_outputs = 3;
inline const std::vector<int32_t> ngram_text{4, 9, 4, 9, 9, 2, 7, 0, 11, 3};

template <class Config>
Config ngram_config(const std::vector<int64_t>& orders) {
  Config config;
  config.orders = orders;
  config.buckets = 101;
  config.width = 5;
  config.scale = 1.5;
  return config;
}

/// A layer with its parameters.
template <class Layer>
struct BuiltNgrams {
  ParamStore store;
  std::unique_ptr<Layer> layer;

  template <class Config>
  explicit BuiltNgrams(const Config& config, bool drawn = true) {
    layer = std::make_unique<Layer>(Scope(store, 1), config, ngram_outputs);
    if (drawn) redraw(store);
    store.finalize();
  }
  Array operator()(const Ids& tokens, const Context& context) const { return (*layer)(tokens, context).value(); }
  /// Of ngram_text.
  Array operator()(const Context& context = Context::evaluation(1, 10)) const {
    return (*this)(Ids({1, 10}, ngram_text), context);
  }
};

/// The mean over many steps of training is what evaluation gives.
template <class Layer>
void check_mean_of_dropout(const BuiltNgrams<Layer>& built) {
  const Array whole = built();
  std::vector<double> mean(static_cast<size_t>(whole.size()), 0);
  constexpr int draws = 4000;
  for (int step = 0; step < draws; ++step) {
    const Array y = built({Segments::full(1, 10), true, static_cast<uint64_t>(step), Ids({1}, 3)});
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += static_cast<double>(y[static_cast<int64_t>(i)]) / draws;
  }
  const Array found(whole.shape(), std::vector<real>(mean.begin(), mean.end()));
  CHECK(relative_error(found, whole) < 0.06);
}

/// Rows of the table have a gradient where a pair of ngram_text named them, and no others.
template <class Layer>
void check_named_rows(BuiltNgrams<Layer>& built) {
  const Param& table = built.store.find("table");
  CHECK(table.options.by_rows);
  TapeScope scope;
  const Var y = (*built.layer)(Ids({1, 10}, ngram_text), Context::evaluation(1, 10));
  scope.tape().backward(std::vector<Var>{y}, {Array(y.shape(), real{1})});
  std::set<int64_t> named;
  for (size_t i = 0; i + 2 <= ngram_text.size(); ++i) named.insert(ngram_bucket(ngram_text.data() + i, 2, 101));
  const RowGrads& grads = built.store.row_grads(table);
  CHECK(grads.rows() == std::vector<int64_t>(named.begin(), named.end()));
  for (int64_t i = 0; i < grads.values().size(); ++i) CHECK(grads.values()[i] != 0);
  built.store.clear_grads();
  CHECK(grads.empty());
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
