#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <xtensor-blas/xlinalg.hpp>

#include "core/array/array_xt.hpp"
#include "core/base/random.hpp"
#include "core/io/safetensors.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/bf16_products.hpp"
#include "tests/support/threads.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/optimizers/optimizer.hpp"
#include "train/support.hpp"

using namespace capstan;

namespace {

using Rows = std::vector<std::vector<double>>;

Array draw(const Shape& shape, uint64_t seed, double scale = 1) { return random_array(shape, seed, scale); }

/// The rows [first, first + count) of a matrix.
Rows rows_of(const real* data, int64_t first, int64_t count, int64_t columns) {
  Rows rows(static_cast<size_t>(count), std::vector<double>(static_cast<size_t>(columns)));
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t c = 0; c < rows[r].size(); ++c)
      rows[r][c] = static_cast<double>(data[(first + static_cast<int64_t>(r)) * columns + static_cast<int64_t>(c)]);
  return rows;
}

Rows product(const Rows& a, const Rows& b) {
  Rows result(a.size(), std::vector<double>(b[0].size(), 0));
  for (size_t r = 0; r < a.size(); ++r)
    for (size_t k = 0; k < b.size(); ++k)
      for (size_t c = 0; c < b[0].size(); ++c) result[r][c] += a[r][k] * b[k][c];
  return result;
}

Rows transposed(const Rows& a) {
  Rows result(a[0].size(), std::vector<double>(a.size()));
  for (size_t r = 0; r < a.size(); ++r)
    for (size_t c = 0; c < a[0].size(); ++c) result[c][r] = a[r][c];
  return result;
}

/// X = a X + b (X X^T) X + c (X X^T)^2 X, five times from X / |X|, always with the Gram matrix of the rows.
Rows newton_schulz(Rows x) {
  double squares = 0;
  for (const auto& row : x)
    for (const double value : row) squares += value * value;
  if (squares == 0) return x;
  for (auto& row : x)
    for (double& value : row) value /= std::sqrt(squares);
  for (int i = 0; i < 5; ++i) {
    const Rows gram = product(x, transposed(x)), third = product(gram, x), fifth = product(gram, third);
    for (size_t r = 0; r < x.size(); ++r)
      for (size_t c = 0; c < x[0].size(); ++c) x[r][c] = 3.4445 * x[r][c] - 4.7750 * third[r][c] + 2.0315 * fifth[r][c];
  }
  return x;
}

/// Muon on one matrix, in double.
struct MuonReference {
  static constexpr double momentum = 0.95;
  Rows w, m;
  void step(const Rows& g, const MuonConfig& config, double lr) {
    Rows direction = w;
    for (size_t r = 0; r < w.size(); ++r) {
      for (size_t c = 0; c < w[0].size(); ++c) {
        m[r][c] = momentum * m[r][c] + g[r][c];
        direction[r][c] = g[r][c] + momentum * m[r][c];
      }
    }
    direction = newton_schulz(direction);
    const double length = 0.2 * std::sqrt(static_cast<double>(std::max(w.size(), w[0].size())));
    for (size_t r = 0; r < w.size(); ++r)
      for (size_t c = 0; c < w[0].size(); ++c)
        w[r][c] += -lr * *config.weight_decay * w[r][c] - lr * length * direction[r][c];
  }
};

void draw_gradients(ParamStore& store, uint64_t seed) {
  RandomStream random({seed, 4});
  for (const Param& param : store.params())
    for (int64_t i = 0; i < param.var.size(); ++i) store.grads()[param.offset + i] = static_cast<real>(random.normal());
}

double worst_difference(const Rows& a, const Rows& b) {
  double worst = 0;
  for (size_t r = 0; r < a.size(); ++r)
    for (size_t c = 0; c < a[0].size(); ++c) worst = std::max(worst, std::abs(a[r][c] - b[r][c]));
  return worst;
}

ParamOptions with_table(bool by_rows = false) {
  ParamOptions options;
  options.table = !by_rows;
  options.by_rows = by_rows;
  return options;
}

}  // namespace

TEST_CASE("Muon follows its equations: wide, tall, square and stacked matrices") {
  MuonConfig config;
  config.weight_decay = 0.3;
  struct Case {
    int64_t rows, columns;
    std::vector<int64_t> stacked;
  };
  for (const Case& c :
       {Case{7, 19, {}}, Case{33, 8, {}}, Case{16, 16, {}}, Case{2, 2, {}}, Case{29, 12, {12, 5, 12}}}) {
    CAPTURE(c.rows);
    CAPTURE(c.columns);
    ParamOptions options;
    options.stacked = c.stacked;
    ParamStore store;
    store.add("w", draw(Shape{c.rows, c.columns}, 1), options);
    store.finalize();
    Optimizer optimizer(config, store);
    const std::vector<int64_t> parts = c.stacked.empty() ? std::vector<int64_t>{c.rows} : c.stacked;
    std::vector<MuonReference> references;
    int64_t first = 0;
    for (const int64_t rows : parts) {
      const Rows w = rows_of(store.values(), first, rows, c.columns);
      references.push_back({w, Rows(w.size(), std::vector<double>(w[0].size(), 0))});
      first += rows;
    }
    for (uint64_t step = 1; step <= 5; ++step) {
      draw_gradients(store, step);
      first = 0;
      for (MuonReference& reference : references) {
        const auto rows = static_cast<int64_t>(reference.w.size());
        Rows g = rows_of(store.grads(), first, rows, c.columns);
        for (auto& row : g)
          for (double& value : row) value *= 0.25;
        reference.step(g, config, 0.05);
        first += rows;
      }
      optimizer.step(store, 0.25, 0.05);
      for (int64_t i = 0; i < store.dense_size(); ++i) REQUIRE(store.grads()[i] == 0);
    }
    first = 0;
    for (const MuonReference& reference : references) {
      const auto rows = static_cast<int64_t>(reference.w.size());
      CHECK(worst_difference(rows_of(store.values(), first, rows, c.columns), reference.w) < 2e-5);
      first += rows;
    }
  }
}

TEST_CASE("the iteration brings singular values near one, keeps their vectors, and leaves zeros alone") {
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{48, 48}, {20, 90}, {90, 20}, {140, 140}, {140, 300}, {300, 140}}) {
    for (const double scale : {1.0, 1e-20, 1e15}) {
      Array matrix = draw(Shape{rows, columns}, 2, scale);
      const Rows start = rows_of(matrix.data(), 0, rows, columns);
      orthogonalise(matrix.mutable_data(), rows, columns);
      CHECK(worst_difference(rows_of(matrix.data(), 0, rows, columns), newton_schulz(start)) < 1e-4);
      const xt::xtensor<double, 2> result = xt::cast<double>(as_xtensor<2>(matrix));
      const auto singular = std::get<1>(xt::linalg::svd(result));
      const size_t needed = static_cast<size_t>(std::min(rows, columns));
      // One of a square random matrix may be near zero, where five iterations are too few.
      CHECK(std::count_if(singular.begin(), singular.end(), [](double s) { return s > 0.68 && s < 1.21; }) >=
            static_cast<long>(rows == columns ? needed - 2 : needed));
      CHECK(*std::max_element(singular.begin(), singular.end()) < 1.21);
    }
  }
  Array zeros(Shape{4, 6}, real{0});
  orthogonalise(zeros.mutable_data(), 4, 6);
  for (int64_t i = 0; i < zeros.size(); ++i) CHECK(zeros[i] == 0);
}

TEST_CASE("the iteration in bf16 gives nearly the same, also where singular values differ by a factor of 1,000") {
  const testing::Bf16Products products;
  if (!products.possible()) return;
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{140, 140}, {140, 300}, {300, 140}, {40, 300}}) {
    Array matrix = draw(Shape{rows, columns}, 2);
    for (int64_t i = 0; i < matrix.size(); ++i)  // rows and columns from 1 to 1 / 30
      matrix.mutable_data()[i] *=
          static_cast<real>(std::pow(30, -static_cast<double>(i / columns) / static_cast<double>(rows)) *
                            std::pow(30, -static_cast<double>(i % columns) / static_cast<double>(columns)));
    const Rows expected = newton_schulz(rows_of(matrix.data(), 0, rows, columns));
    orthogonalise(matrix.mutable_data(), rows, columns, /*bf16=*/true);
    const Rows got = rows_of(matrix.data(), 0, rows, columns);
    double difference = 0, size = 0;
    for (size_t r = 0; r < got.size(); ++r)
      for (size_t c = 0; c < got[r].size(); ++c) {
        difference += std::pow(got[r][c] - expected[r][c], 2);
        size += std::pow(expected[r][c], 2);
      }
    CHECK(std::sqrt(difference / size) < 0.1);
    CHECK((difference > 1e-6) == (std::max(rows, columns) < 4 * std::min(rows, columns)));
    const xt::xtensor<double, 2> result = xt::cast<double>(as_xtensor<2>(matrix));
    const auto singular = std::get<1>(xt::linalg::svd(result));
    CHECK(*std::max_element(singular.begin(), singular.end()) < 1.25);
  }
}

TEST_CASE("Muon: without a gradient a matrix decays and nothing else; the update has a root mean square of 0.2") {
  ParamStore store;
  store.add("w", draw(Shape{12, 30}, 3), {});
  store.finalize();
  const Array before = store.find("w").var.value().clone();
  Optimizer optimizer(MuonConfig{}, store);
  optimizer.step(store, 1, 0.5);
  for (int64_t i = 0; i < before.size(); ++i)
    CHECK(store.values()[i] == doctest::Approx(static_cast<double>(before[i]) * (1 - 0.5 * 0.1)));
  const Array decayed = store.find("w").var.value().clone();
  draw_gradients(store, 9);
  MuonConfig config;
  config.weight_decay = 0;
  Optimizer(config, store).step(store, 1, 0.5);
  double squares = 0;
  for (int64_t i = 0; i < before.size(); ++i)
    squares += std::pow(static_cast<double>(store.values()[i] - decayed[i]), 2);
  CHECK(std::sqrt(squares / static_cast<double>(before.size())) == doctest::Approx(0.5 * 0.2).epsilon(0.2));
}

TEST_CASE("Muon: clipping shortens one gradient among others, and changes nothing where it shortens all alike") {
  const auto values_after = [](double first_scale, double second_scale) {
    ParamStore store;
    store.add("w", draw(Shape{9, 5}, 3), {});
    store.finalize();
    Optimizer optimizer(MuonConfig{}, store);
    draw_gradients(store, 1);
    optimizer.step(store, first_scale, 0.01);
    draw_gradients(store, 2);
    optimizer.step(store, second_scale, 0.01);
    return store.find("w").var.value().clone();
  };
  const Array whole = values_after(1, 1), both = values_after(0.125, 0.125), one = values_after(1, 0.125);
  bool differs = false;
  for (int64_t i = 0; i < whole.size(); ++i) {
    CHECK(static_cast<double>(both[i]) == doctest::Approx(static_cast<double>(whole[i])).epsilon(1e-5));
    differs = differs || std::abs(one[i] - whole[i]) > 1e-4F;
  }
  CHECK(differs);
}

TEST_CASE("Muon: what is not a matrix is updated by AdamW, and keeps its state alone") {
  const auto fill = [](ParamStore& store, bool with_matrices) {
    ParamOptions plain;
    plain.decay = false;
    if (with_matrices) store.add("first", draw(Shape{6, 10}, 1), {});
    store.add("embedding", draw(Shape{11, 7}, 2), with_table());
    store.add("row", draw(Shape{1, 9}, 3), {});
    if (with_matrices) store.add("second", draw(Shape{5, 3}, 4), {});
    store.add("vector", draw(Shape{13}, 5), {});
    store.add("positions", draw(Shape{4, 6}, 6), plain);
    store.add("bias", draw(Shape{5}, 7), plain);
    store.add("rows", draw(Shape{20, 3}, 8), with_table(/*by_rows=*/true));
    store.finalize();
  };
  MuonConfig config;
  config.adamw = {0.8, 0.9, 0.4};
  ParamStore store, others;
  fill(store, true);
  fill(others, false);
  Optimizer muon(config, store), adamw(config.adamw, others);
  for (uint64_t step = 1; step <= 3; ++step) {
    for (const Param& param : others.params()) {
      const Array grads = draw(param.var.shape(), 20 + step);
      const Param& twin = store.find(param.name);
      if (param.options.by_rows) {
        const RowGrads rows({4, 17}, grads.rows(0, 2));
        others.row_grads(param) = store.row_grads(twin) = rows;
        continue;
      }
      for (int64_t i = 0; i < grads.size(); ++i)
        others.grads()[param.offset + i] = store.grads()[twin.offset + i] = grads[i];
    }
    for (const char* const name : {"first", "second"}) {
      const Param& param = store.find(name);
      std::copy_n(draw(param.var.shape(), step).data(), param.var.size(), store.grads() + param.offset);
    }
    muon.step(store, 0.5, 0.01);
    adamw.step(others, 0.5, 0.01);
    CHECK(store.row_grads(store.find("rows")).empty());
    for (int64_t i = 0; i < store.dense_size(); ++i) REQUIRE(store.grads()[i] == 0);
  }
  for (const Param& param : others.params()) {
    INFO(param.name);
    const Array value = store.find(param.name).var.value();
    for (int64_t i = 0; i < value.size(); ++i)
      CHECK(static_cast<double>(value[i]) == doctest::Approx(static_cast<double>(param.var.value()[i])).epsilon(1e-6));
  }
  for (const Param& param : store.params()) {
    const bool matrix = param.name == "first" || param.name == "second";
    CHECK(is_matrix(param) == matrix);
    for (OptimizerState& state : muon.states())
      CHECK((state.of(param).size() > 0) == ((state.name() == "momentum") == matrix));
  }
  int64_t remembered = 0;
  for (const OptimizerState& state : muon.states()) remembered += state.size();
  CHECK(remembered < 2 * store.flat_size());
}

TEST_CASE("Muon does not depend on the number of threads") {
  std::vector<real> values[2];
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    ParamStore store;
    for (int64_t i = 0; i < 5; ++i)
      store.add("w" + std::to_string(i), draw(Shape{100 + 10 * i, 130}, static_cast<uint64_t>(i)), {});
    store.add("v", draw(Shape{40001}, 9), {});
    store.finalize();
    Optimizer optimizer(MuonConfig{}, store);
    for (uint64_t step = 1; step <= 2; ++step) {
      draw_gradients(store, step);
      optimizer.step(store, 1, 0.01);
    }
    values[count - 1].assign(store.values(), store.values() + store.flat_size());
  }
  CHECK(values[0] == values[1]);
}

TEST_CASE("Muon: a checkpoint holds one momentum per matrix, two moments of the rest, and goes on to the same bits") {
  const TemporaryFolder folder;
  const auto fill = [](ParamStore& store) {
    ParamOptions stacked;
    stacked.stacked = {6, 3};
    store.add("stacked", draw(Shape{9, 10}, 1), stacked);
    store.add("embedding", draw(Shape{11, 7}, 2), with_table());
    store.add("matrix", draw(Shape{5, 3}, 4), {});
    store.finalize();
  };
  const auto step = [](ParamStore& store, Optimizer& optimizer, uint64_t number) {
    draw_gradients(store, number);
    optimizer.step(store, 0.5, 0.01);
  };
  ParamStore unbroken, first, second;
  for (ParamStore* store : {&unbroken, &first, &second}) fill(*store);
  Optimizer whole(MuonConfig{}, unbroken), before(MuonConfig{}, first), after(MuonConfig{}, second);
  for (uint64_t number = 1; number <= 6; ++number) step(unbroken, whole, number);
  for (uint64_t number = 1; number <= 3; ++number) step(first, before, number);
  RunState state, restored;
  state.step = state.optimizer_step = before.steps();
  Checkpoints checkpoints(folder / "checkpoints");
  checkpoints.recover();
  checkpoints.write({first, before, state}, 1);
  checkpoints.publish();
  checkpoints.load(checkpoints.of_step(3), {second, after, restored});
  CHECK(after.steps() == 3);
  for (uint64_t number = 4; number <= 6; ++number) step(second, after, number);
  CHECK(std::equal(unbroken.values(), unbroken.values() + unbroken.flat_size(), second.values()));

  const SafetensorsFile file((checkpoints.of_step(3) / "optimizer.safetensors").string());
  std::vector<std::string> names;
  for (const FileTensor& tensor : file.tensors()) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"embedding.first_moment", "embedding.second_moment", "matrix.momentum",
                                          "stacked.momentum"});
}

TEST_CASE("rows that do not add up to the weight's are refused") {
  ParamStore store;
  ParamOptions options;
  options.stacked = {4, 4};
  CHECK_THROWS_AS(store.add("w", Array(Shape{9, 3}, real{0}), options), std::invalid_argument);
  CHECK_NOTHROW(store.add("w", Array(Shape{8, 3}, real{0}), options));
}
