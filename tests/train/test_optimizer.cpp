#include "train/optimizers/optimizer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/random.hpp"
#include "core/kernels/optimizer.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/threads.hpp"

using namespace capstan;

namespace {

/// A store of a decayed and an undecayed parameter with random values.
void fill_store(ParamStore& store, int64_t decayed, int64_t plain) {
  store.add("decayed", random_array({decayed}, 1, 1), {});
  store.add("plain", random_array({plain}, 2, 1), {false});
  store.finalize();
}

/// State of one number under a textbook implementation in double.
struct OneWeight {
  double w, m = 0, v = 0;
};
using Reference = std::function<void(OneWeight&, double g, double lr, double decay, int64_t step)>;

/// Ten steps of the optimizer beside the reference, for every number of a store larger than
/// a SIMD body, ragged at the end.
void compare(const OptimizerConfig& config, double weight_decay, const Reference& reference) {
  ParamStore store;
  fill_store(store, 40003, 517);
  Optimizer optimizer(config, store);
  std::vector<OneWeight> expected;
  for (const Param& param : store.params())
    for (int64_t i = 0; i < param.var.size(); ++i) expected.push_back({static_cast<double>(param.var.value()[i])});
  RandomStream random({8, 9});
  for (int64_t step = 1; step <= 10; ++step) {
    size_t next = 0;
    for (const Param& param : store.params()) {
      for (int64_t i = 0; i < param.var.size(); ++i) {
        const real g = static_cast<real>(random.normal());
        store.grads()[param.offset + i] = g;
        reference(expected[next++], 0.5 * static_cast<double>(g), 0.01, param.options.decay ? weight_decay : 0, step);
      }
    }
    optimizer.step(store, 0.5, 0.01);
  }
  size_t next = 0;
  double worst = 0;
  for (const Param& param : store.params())
    for (int64_t i = 0; i < param.var.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(param.var.value()[i]) - expected[next++].w));
  CHECK(worst < 2e-6);
  for (int64_t i = 0; i < store.dense_size(); ++i) REQUIRE(store.grads()[i] == 0);
}

}  // namespace

TEST_CASE("AdamW follows its equations") {
  compare(AdamWConfig{0.9, 0.95, 0.1}, 0.1, [](OneWeight& s, double g, double lr, double decay, int64_t step) {
    s.m = 0.9 * s.m + 0.1 * g;
    s.v = 0.95 * s.v + 0.05 * g * g;
    s.w -= lr * decay * s.w;
    const double t = static_cast<double>(step);
    s.w -= lr * (s.m / (1 - std::pow(0.9, t))) / (std::sqrt(s.v / (1 - std::pow(0.95, t))) + 1e-8);
  });
}

TEST_CASE("AdamW: the first step is the learning rate against the sign of the gradient") {
  ParamStore store;
  store.add("w", Array(Shape{2}, std::vector<real>{1, 2}), {false});
  store.finalize();
  Optimizer optimizer(AdamWConfig{}, store);
  store.grads()[0] = 3;
  store.grads()[1] = real{-0.004F};
  optimizer.step(store, 1, 0.1);
  CHECK(store.values()[0] == doctest::Approx(0.9));
  CHECK(store.values()[1] == doctest::Approx(2.1));
}

TEST_CASE("SGD with momentum and decay") {
  compare(SgdConfig{0.9, 0.05}, 0.05, [](OneWeight& s, double g, double lr, double decay, int64_t) {
    g += decay * s.w;
    s.m = 0.9 * s.m + g;
    s.w -= lr * s.m;
  });
}

TEST_CASE("Lion follows its equations") {
  compare(LionConfig{1}, 1, [](OneWeight& s, double g, double lr, double decay, int64_t) {
    const double direction = 0.9 * s.m + 0.1 * g;
    s.w -= lr * ((direction > 0) - (direction < 0) + decay * s.w);
    s.m = 0.99 * s.m + 0.01 * g;
  });
  // Without a gradient nothing moves.
  ParamStore store;
  store.add("w", Array(Shape{3}, real{2}), {false});
  store.finalize();
  Optimizer optimizer(LionConfig{}, store);
  optimizer.step(store, 1, 0.01);
  CHECK(store.find("w").var.value().to_vector() == std::vector<real>{2, 2, 2});
}

namespace {

constexpr int64_t table_rows = 300, table_width = 19;

/// A vector and a table, updated by rows or as a whole.
void fill_with_table(ParamStore& store, bool by_rows) {
  store.add("vector", Array(Shape{33}, real{0.5F}), {});
  store.add("table", random_array({table_rows, table_width}, 3, 1), {true, by_rows});
  store.finalize();
}

/// Gradients for the vector and some rows of the table, which ascend.
void add_gradients(ParamStore& store, const std::vector<int64_t>& rows, uint64_t seed) {
  for (const Param& param : store.params()) {
    if (param.name == "vector") {
      const Array grads = random_array({33}, seed, 1);
      for (int64_t i = 0; i < 33; ++i) store.grads()[param.offset + i] += grads[i];
      continue;
    }
    const Array values = random_array({static_cast<int64_t>(rows.size()), table_width}, seed, 1);
    if (param.table >= 0) {
      store.row_grads(param).add(RowGrads(rows, values));
      continue;
    }
    for (int64_t i = 0; i < values.size(); ++i)
      store.grads()[param.offset + rows[static_cast<size_t>(i / table_width)] * table_width + i % table_width] +=
          values[i];
  }
}

}  // namespace

TEST_CASE("a table updated by rows: rows with a gradient become what they become in a dense update, others rest") {
  const std::vector<OptimizerConfig> configs{AdamWConfig{}, SgdConfig{0.9, 0.1}, LionConfig{}};  // Muon: test_muon.cpp
  for (const OptimizerConfig& config : configs) {
    ParamStore dense, sparse;
    fill_with_table(dense, false);
    fill_with_table(sparse, true);
    Optimizer of_dense(config, dense), of_sparse(config, sparse);
    const std::vector<int64_t> rows{0, 17, 64, 299};
    const Array before = sparse.find("table").var.value().clone();
    for (uint64_t step = 1; step <= 3; ++step) {
      // In two parts, as micro-batches come.
      for (ParamStore* store : {&dense, &sparse}) {
        add_gradients(*store, {0, 17}, step);
        add_gradients(*store, rows, step + 10);
      }
      CHECK(gradient_norm(sparse, 0.5) == doctest::Approx(gradient_norm(dense, 0.5)).epsilon(1e-12));
      of_dense.step(dense, 0.5, 0.01);
      of_sparse.step(sparse, 0.5, 0.01);
      for (int64_t i = 0; i < sparse.dense_size(); ++i) REQUIRE(sparse.grads()[i] == 0);
      CHECK(sparse.row_grads(sparse.find("table")).empty());
    }
    const Array after = sparse.find("table").var.value(), expected = dense.find("table").var.value();
    for (int64_t row = 0; row < table_rows; ++row) {
      const bool named = std::find(rows.begin(), rows.end(), row) != rows.end();
      for (int64_t i = row * table_width; i < (row + 1) * table_width; ++i) {
        if (named)
          CHECK(static_cast<double>(after[i]) == doctest::Approx(static_cast<double>(expected[i])).epsilon(1e-6));
        else
          CHECK(after[i] == before[i]);
      }
    }
    const Array vector = sparse.find("vector").var.value(), wanted = dense.find("vector").var.value();
    for (int64_t i = 0; i < 33; ++i) CHECK(vector[i] == wanted[i]);
  }
}

TEST_CASE("a table updated by rows: the norm shows what is not finite") {
  ParamStore store;
  fill_with_table(store, true);
  add_gradients(store, {5}, 1);
  const Param& table = store.find("table");
  store.row_grads(table).data()[0] = real{NAN};
  CHECK_FALSE(std::isfinite(gradient_norm(store, 1)));
  store.clear_grads();
  CHECK(gradient_norm(store, 1) == 0);
}

TEST_CASE("norm and updates do not depend on the number of threads") {
  std::vector<real> values[2];
  double norms[2];
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    ParamStore store;
    fill_store(store, 100003, 70001);
    RandomStream random({1, 1});
    for (int64_t i = 0; i < store.dense_size(); ++i) store.grads()[i] = static_cast<real>(random.normal());
    norms[count - 1] = gradient_norm(store, 1);
    Optimizer optimizer(AdamWConfig{}, store);
    optimizer.step(store, 1, 0.01);
    values[count - 1].assign(store.values(), store.values() + store.flat_size());
  }
  CHECK(norms[0] == norms[1]);
  CHECK(values[0] == values[1]);
}

TEST_CASE("the gradient norm is exact and shows whatever is not finite") {
  for (const int64_t size : {1, 15, 300, 5000}) {
    ParamStore store;
    store.add("w", Array(Shape{size}, real{0}), {});
    store.finalize();
    for (int64_t i = 0; i < size; ++i) store.grads()[i] = real{3};
    CHECK(gradient_norm(store, 0.5) == doctest::Approx(1.5 * std::sqrt(static_cast<double>(size))).epsilon(1e-12));
    store.grads()[0] = real{1e30F};  // its square is no float
    CHECK(std::isfinite(gradient_norm(store, 1)));
    for (const real bad : {real{NAN}, real{INFINITY}}) {
      store.grads()[size - 1] = bad;
      CHECK_FALSE(std::isfinite(gradient_norm(store, 1)));
    }
  }
}

TEST_CASE("clipping shortens what is too long and nothing else") {
  CHECK(clip_factor(4, 1) == 0.25);
  CHECK(clip_factor(0.5, 1) == 1);
  CHECK(clip_factor(4, 0) == 1);
}
