// Parameters: names, flat layout, initial values.
#include <doctest/doctest.h>

#include "core/base/error.hpp"
#include "core/ops/ops.hpp"
#include "nn/layers/layers.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/threads.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

const ParamOptions undecayed{/*decay=*/false};

/// Sizes that fill no whole 64 bytes, decayed and undecayed ones in turns.
void fill(ParamStore& store) {
  const Scope scope(store, 7);
  (scope / "embed").param("weight", {5, 7}, init::normal(1));
  (scope / "blocks" / 0 / "norm").param("gain", {7}, init::ones(), undecayed);
  (scope / "blocks" / 0).param("weight", {3, 1, 11}, init::normal(1));
  scope.param("scalar", {}, init::constant(2.5), undecayed);
  scope.param("full", {4, 16}, init::normal(1));
}

TEST_CASE("names are paths, in order of creation, and found again") {
  ParamStore store;
  fill(store);
  std::vector<std::string> names;
  for (const Param& param : store.params()) names.push_back(param.name);
  CHECK(names == std::vector<std::string>{"embed.weight", "blocks.0.norm.gain", "blocks.0.weight", "scalar", "full"});
  CHECK(store.count() == 35 + 7 + 33 + 1 + 64);
  CHECK(store.find("blocks.0.weight").var.shape() == Shape{3, 1, 11});
  CHECK_THROWS_WITH_AS(store.find("blocks.0.wieght"),
                       "params: there is no parameter blocks.0.wieght; the nearest is blocks.0.weight", Error);
  CHECK_THROWS_AS(ParamStore().find("anything"), Error);
}

TEST_CASE("a name is given once, and never after finalize()") {
  ParamStore store;
  fill(store);
  const Scope scope(store, 7);
  CHECK_THROWS_WITH_AS((scope / "embed").param("weight", {2}, init::zeros()),
                       "params: there are two parameters called embed.weight", std::logic_error);
  CHECK_THROWS_AS(scope.param("bad", {3}, [](const Shape&, RandomStream&) { return Array::zeros({4}); }),
                  std::invalid_argument);
  CHECK_FALSE(store.finalized());
  store.finalize();
  CHECK(store.finalized());
  CHECK_THROWS_WITH_AS(scope.param("late", {3}, init::zeros()), "params: late was made after finalize()",
                       std::logic_error);
  CHECK_THROWS_AS(store.finalize(), std::logic_error);
  CHECK(store.params().size() == 5);
}

TEST_CASE("aliases are other names of parameters that exist") {
  ParamStore store;
  fill(store);
  store.alias("head.weight", "embed.weight");
  CHECK(store.aliases() == std::vector<std::pair<std::string, std::string>>{{"head.weight", "embed.weight"}});
  CHECK(store.params().size() == 5);
  CHECK_THROWS_AS(store.alias("head.bias", "embed.bias"), Error);
}

/// Which numbers of the flat blocks belong to a parameter.
std::vector<bool> occupied(const ParamStore& store) {
  std::vector<bool> flags(static_cast<size_t>(store.flat_size()), false);
  for (const Param& param : store.params())
    for (int64_t i = 0; i < param.var.size(); ++i) {
      const size_t at = static_cast<size_t>(param.offset + i);
      CHECK_FALSE(flags[at]);  // no other parameter's
      flags[at] = true;
    }
  return flags;
}

TEST_CASE("finalize() lays all parameters out flat: aligned, decayed ones first, the gaps zero") {
  ParamStore store, original;
  fill(store);
  fill(original);
  store.finalize();
  constexpr int64_t granule = 64 / sizeof(real);
  CHECK(reinterpret_cast<uintptr_t>(store.values()) % 64 == 0);
  CHECK(reinterpret_cast<uintptr_t>(store.grads()) % 64 == 0);
  CHECK(store.flat_size() % granule == 0);
  CHECK(store.decay_size() == (35 + granule - 1) / granule * granule + (33 + granule - 1) / granule * granule + 64);
  for (size_t i = 0; i < store.params().size(); ++i) {
    const Param& param = store.params()[i];
    INFO(param.name);
    CHECK(param.offset % granule == 0);
    CHECK((param.offset + param.var.size() <= store.decay_size()) == param.options.decay);
    CHECK(param.var.value().data() == store.values() + param.offset);
    CHECK(identical(param.var.value(), original.params()[i].var.value()));
  }
  const std::vector<bool> flags = occupied(store);
  for (size_t i = 0; i < flags.size(); ++i) {
    if (!flags[i]) CHECK(store.values()[i] == 0);
    CHECK(store.grads()[i] == 0);
  }
}

TEST_CASE("tables that are updated by rows follow the other parameters") {
  ParamStore store;
  store.add("table", Array(Shape{7, 5}, real{2}), {true, /*by_rows=*/true});
  store.add("full", Array(Shape{64}, real{1}), {});
  store.add("bias", Array(Shape{3}, real{1}), {false});
  CHECK_THROWS_AS(store.add("flat", Array(Shape{7}, real{1}), {true, true}), std::invalid_argument);
  store.finalize();
  CHECK(store.decay_size() == 64);
  CHECK(store.find("table").offset == store.dense_size());
  CHECK(store.dense_size() < store.flat_size());
  CHECK(store.values()[store.dense_size() + 34] == 2);
  CHECK(store.find("table").table == 0);
  CHECK(store.find("full").table == -1);
  CHECK(store.grad_block().dense().size() == store.dense_size());  // a table's gradient takes no memory of its size
  CHECK(store.row_grads(store.find("table")).empty());
  CHECK(store.count() == 35 + 64 + 3);
}

TEST_CASE("gradients of finalized parameters add up in the flat block, and are cleared in one pass") {
  ParamStore store;
  fill(store);
  const Var held = store.find("full").var;  // a module's handle from before finalize()
  store.finalize();
  for (int pass = 1; pass <= 2; ++pass) {
    TapeScope scope;
    scope.backward(sum(held * 3.0) + sum(square(store.find("embed.weight").var)));
    const Param &full = store.find("full"), &embed = store.find("embed.weight");
    for (int64_t i = 0; i < 64; ++i) CHECK(store.grads()[full.offset + i] == 3 * pass);
    for (int64_t i = 0; i < 35; ++i)
      CHECK(store.grads()[embed.offset + i] == doctest::Approx(2 * pass * embed.var.value()[i]));
  }
  const std::vector<bool> flags = occupied(store);
  for (size_t i = 0; i < flags.size(); ++i)
    if (!flags[i]) CHECK(store.grads()[i] == 0);
  store.clear_grads();
  for (int64_t i = 0; i < store.dense_size(); ++i) CHECK(store.grads()[i] == 0);
  store.values()[store.find("full").offset] = 42;  // as an optimizer would
  CHECK(held.value()[0] == 42);
}

TEST_CASE("an initial value depends on seed and path, and on nothing that was made before") {
  const auto drawn = [](uint64_t seed, const std::string& part, bool others_first) {
    ParamStore store;
    const Scope scope(store, seed);
    if (others_first) (scope / "other").param("weight", {100}, init::normal(1));
    return (scope / part).param("weight", {6, 7}, init::normal(1)).value();
  };
  const Array value = drawn(1, "up", false);
  CHECK(identical(drawn(1, "up", false), value));
  CHECK(identical(drawn(1, "up", true), value));
  CHECK_FALSE(identical(drawn(2, "up", false), value));
  CHECK_FALSE(identical(drawn(1, "down", false), value));
}

struct Moments {
  double mean = 0, stddev = 0, lowest = INFINITY, highest = -INFINITY;
};

Moments moments(const Array& array) {
  Moments result;
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < array.size(); ++i) {
    const double number = static_cast<double>(array[i]);
    sum += number;
    squares += number * number;
    result.lowest = std::min(result.lowest, number);
    result.highest = std::max(result.highest, number);
  }
  const double count = static_cast<double>(array.size());
  result.mean = sum / count;
  result.stddev = std::sqrt(squares / count - result.mean * result.mean);
  return result;
}

TEST_CASE("initialisers have the statistics their names promise") {
  struct InitCase {
    std::string name;
    Init init;
    double mean, stddev, limit;  // limit: of |value - mean|, nearly reached; 0: none
  };
  const Shape shape{300, 200};
  for (const InitCase& c : {InitCase{"zeros", init::zeros(), 0, 0, 0},
                            {"ones", init::ones(), 1, 0, 0},
                            {"constant", init::constant(-0.75), -0.75, 0, 0},
                            {"normal", init::normal(0.02), 0, 0.02, 0},
                            {"uniform", init::uniform(-1, 3), 1, 4 / std::sqrt(12.0), 2},
                            {"lecun_normal", init::lecun_normal(), 0, 1 / std::sqrt(200.0), 0},
                            {"lecun_normal with gain", init::lecun_normal(0.5), 0, 0.5 / std::sqrt(200.0), 0}}) {
    INFO(c.name);
    RandomStream random({3, 4});
    const Array array = c.init(shape, random);
    CHECK(array.shape() == shape);
    const Moments found = moments(array);
    CHECK(std::abs(found.mean - c.mean) <= 4 * c.stddev / std::sqrt(60000.0));
    CHECK(std::abs(found.stddev - c.stddev) <= 0.01 * c.stddev + 1e-6);
    if (c.limit == 0) continue;
    CHECK(found.highest <= c.mean + c.limit);
    CHECK(found.lowest >= c.mean - c.limit);
    CHECK(found.highest - found.lowest > 1.99 * c.limit);
  }
}

TEST_CASE("normal: the numbers of the stream one by one but for rounding, on any number of threads") {
  const Shape shape{257, 129};
  for (const uint64_t start : {uint64_t{0}, (uint64_t{1} << 32) - 1000}) {  // a counter has two words of 32 bits
    RandomStream first_random({3, 4}, start);
    const Array first = init::normal(0.5)(shape, first_random);
    for (const int count : {1, 2, 3}) {
      const Threads threads_used(count);
      RandomStream random({3, 4}, start), one_by_one({3, 4}, start);
      const Array array = init::normal(0.5)(shape, random);
      bool same = true;
      double furthest = 0;
      for (int64_t i = 0; i < array.size(); ++i) {
        same = same && array[i] == first[i];
        furthest = std::max(furthest, std::abs(static_cast<double>(array[i]) - 0.5 * one_by_one.normal()));
      }
      CHECK(same);
      // Half of a float's last digit between 2 and 4; in double the stream rounds 2 pi v before the cosine.
      CHECK(furthest <= (sizeof(real) == 4 ? 1.2e-7 : 4e-15));
      CHECK(random.word() == one_by_one.word());
    }
  }
}

TEST_CASE("initialisers of weights refuse other shapes") {
  RandomStream random({1, 1});
  for (const Shape& shape : {Shape{5}, Shape{2, 3, 4}})
    CHECK_THROWS_AS(init::lecun_normal()(shape, random), std::invalid_argument);
}

TEST_CASE("parameters whose values a file has: none are drawn, and gradients take no memory") {
  ParamStore store(ParamMemory::values), usual;
  const auto make = [](ParamStore& of) {
    const Linear linear(Scope(of, 1) / "linear", {40, 30, true, 0.5});
    of.finalize();
  };
  const PoolStats before = pool::stats();
  make(store);
  CHECK(pool::stats().bytes_in_use - before.bytes_in_use < 3 * 40 * 30 * sizeof(real) / 2);
  make(usual);
  CHECK(store.grad_block().dense().empty());
  CHECK(store.flat_size() == usual.flat_size());
  for (size_t i = 0; i < store.params().size(); ++i) {
    const Param& param = store.params()[i];
    CHECK(param.offset == usual.params()[i].offset);
    CHECK(param.var.value().data() == store.values() + param.offset);
  }
}

TEST_CASE("modules ask for no decay of biases, gains and what says so") {
  ParamStore store;
  const Scope scope(store, 1);
  const Linear linear(scope / "linear", {40, 30, true, 0.5});
  const Embedding embedding(scope / "embedding", {50, 40, 0.3, /*decay=*/false});
  const Norm layer(scope / "layer", {}, 40), rms(scope / "rms", {NormKind::rms, 1e-5}, 40),
      scale(scope / "scale", {NormKind::scale, 1e-5}, 40);
  std::string decayed;
  for (const Param& param : store.params())
    if (param.options.decay) decayed += param.name + " ";
  CHECK(decayed == "linear.weight ");
  CHECK(store.params().size() == 7);
  CHECK(store.find("scale.gain").var.shape() == Shape{1});
  CHECK(moments(linear.weight().value()).stddev == doctest::Approx(0.5 / std::sqrt(40.0)).epsilon(0.05));
  CHECK(moments(embedding.weight().value()).stddev == doctest::Approx(0.3).epsilon(0.05));
  CHECK(moments(linear.bias().value()).stddev == 0);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION
