// The tape's contract, with ops made for the purpose.
#include <doctest/doctest.h>

#include "core/ops/ops.hpp"
#include "support/arrays.hpp"
#include "tests/support/threads.hpp"

using namespace capstan;

namespace {

/// x, with a pullback that answers `grads`.
Var answering(const Var& x, const Grads& grads) {
  return make_var("answering", x.value().clone(), {x}, [grads](const Array&, const Needs&) { return grads; });
}

/// A leaf whose gradient is a slice of a flat block, as a parameter's is after ParamStore::finalize().
struct Block {
  explicit Block(const Array& initial) : var(Var::leaf(initial)), grads(initial.size() + 3, 0) {
    var.bind(initial.clone(), grads, 2, -1);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  Var var;
  GradBlock grads;
};

}  // namespace

TEST_CASE("nothing is recorded without a tape or without an input that needs a gradient") {
  const Var leaf = Var::leaf(random_array({3}));
  CHECK_FALSE((leaf * leaf).needs_grad());
  TapeScope scope;
  CHECK_FALSE((Var(random_array({3})) + Var(random_array({3}))).needs_grad());
  CHECK(scope.tape().size() == 0);
  {
    const TapePause pause;
    CHECK_FALSE(exp(leaf).needs_grad());
  }
  CHECK(exp(leaf).needs_grad());
  CHECK(scope.tape().size() == 1);
  const Var constant(random_array({3}));
  scope.backward(sum(leaf * constant));
  CHECK(scope.tape().size() == 0);
  CHECK(identical(leaf.grad(), constant.value()));
}

TEST_CASE("a pullback that breaks its contract is named") {
  const Var leaf = Var::leaf(random_array({2, 3}));
  const std::vector<std::pair<Grads, std::string>> cases = {
      {{}, "answering: the pullback returned 0 gradients for 1 inputs"},
      {{Array::zeros({2, 3}), Array::zeros({2, 3})}, "answering: the pullback returned 2 gradients for 1 inputs"},
      {{Array::zeros({3, 2})}, "answering: a gradient of shape (3, 2) does not sum to (2, 3)"}};
  for (const auto& [grads, message] : cases) {
    TapeScope scope;
    CHECK_THROWS_WITH_AS(scope.backward(sum(answering(leaf, grads))), message.c_str(), std::logic_error);
  }
}

TEST_CASE("row gradients that do not fit their table are named") {
  const Var table = Var::leaf(random_array({5, 3}));
  const auto rows_of = [](std::vector<int64_t> rows, int64_t width) {
    Array values = Array::zeros({static_cast<int64_t>(rows.size()), width});
    return RowGrads(std::move(rows), std::move(values));
  };
  const std::vector<std::pair<RowGrads, std::string>> cases = {
      {rows_of({0, 2}, 4), "answering: the pullback returned rows 0 to 2 of width 4 for a table of shape (5, 3)"},
      {rows_of({1, 5}, 3), "answering: the pullback returned rows 1 to 5 of width 3 for a table of shape (5, 3)"}};
  for (const auto& [rows, message] : cases) {
    TapeScope scope;
    Grads grads(1);
    grads[0] = RowGrads(rows);
    CHECK_THROWS_WITH_AS(scope.backward(sum(answering(table, grads))), message.c_str(), std::logic_error);
  }
}

TEST_CASE("backward wants a scalar that was recorded") {
  const Var leaf = Var::leaf(random_array({2}));
  TapeScope scope;
  CHECK_THROWS_AS(scope.backward(exp(leaf)), std::invalid_argument);
  CHECK_THROWS_AS(scope.backward(Var(Array::scalar(1))), std::invalid_argument);
}

TEST_CASE("gradients are summed over broadcast axes") {
  const Var a = Var::leaf(random_array({2, 1, 3})), b = Var::leaf(random_array({4, 1}, 2)),
            s = Var::leaf(Array::scalar(2));
  TapeScope scope;
  scope.backward(sum(a * b + s));
  CHECK(a.grad().shape() == a.shape());
  double sum_b = 0, sum_a = 0;
  for (int64_t i = 0; i < b.size(); ++i) sum_b += b.value()[i];
  for (int64_t i = 0; i < a.size(); ++i) sum_a += a.value()[i];
  CHECK(difference(a.grad(), Array(a.shape(), static_cast<real>(sum_b))) < 1e-6);
  CHECK(difference(b.grad(), Array(b.shape(), static_cast<real>(sum_a))) < 1e-6);
  CHECK(s.grad().item() == 24);
}

TEST_CASE("gradients add up over uses and over calls of backward, and scale") {
  const Var x = Var::leaf(Array(Shape{2}, {3, 5}));
  TapeScope scope;
  scope.backward(sum(x + x + reshape(x, {2})));
  CHECK(identical(x.grad(), Array(Shape{2}, real{3})));
  scope.backward(sum(x), 0.5);
  CHECK(identical(x.grad(), Array(Shape{2}, real{3.5})));
  x.clear_grad();
  CHECK_THROWS_AS(x.grad(), std::logic_error);
  // What one gradient shares with another must not be written.
  const Var y = Var::leaf(Array(Shape{2}, {1, 2}));
  scope.backward(sum((x + y) * 1 + x));
  CHECK(identical(x.grad(), Array(Shape{2}, real{2})));
  CHECK(identical(y.grad(), Array(Shape{2}, real{1})));
}

TEST_CASE("gradients of parameters go into their blocks in place, beside what is there") {
  const Ids ids(Shape{5}, {1, 0, 1, 2, 1});
  Block weight(random_array({4, 3})), table(random_array({3, 4}, 2)), bias(random_array({3}, 3));
  const Var leaf_weight = Var::leaf(weight.var.value().clone()), leaf_table = Var::leaf(table.var.value().clone()),
            leaf_bias = Var::leaf(bias.var.value().clone());
  const auto loss = [&](const Var& w, const Var& t, const Var& b) {
    return sum(square(matmul(embedding(t, ids), w) + b));
  };
  for (int repeat = 1; repeat <= 2; ++repeat) {
    TapeScope scope;
    scope.backward(loss(weight.var, table.var, bias.var));
    scope.backward(loss(leaf_weight, leaf_table, leaf_bias));
  }
  CHECK(difference(weight.var.grad(), leaf_weight.grad()) < 1e-5);
  CHECK(difference(table.var.grad(), leaf_table.grad()) < 1e-5);
  CHECK(difference(bias.var.grad(), leaf_bias.grad()) < 1e-5);
  CHECK(weight.var.grad().data() == weight.grads.data() + 2);
  CHECK(weight.grads.data()[0] == 0);
  CHECK(weight.grads.data()[weight.grads.dense().size() - 1] == 0);
}

TEST_CASE("on a thread with a lane's gradients, pullbacks add to these and leave the store's") {
  const Array initial = random_array({4, 3});
  Block weight(initial);
  GradBlock other(1, 0), lane(weight.grads.dense().size(), 0);
  const auto pass = [&] {
    TapeScope scope;
    scope.backward(sum(square(weight.var)));
  };
  {
    const LaneGrads outer(weight.grads, lane);
    pass();
    {
      const LaneGrads inner(other, lane);  // of another store
      pass();
    }
    pass();
  }
  for (int64_t i = 0; i < initial.size(); ++i) {
    CHECK(lane.data()[2 + i] == doctest::Approx(2 * 2 * initial[i]));
    CHECK(weight.var.grad()[i] == doctest::Approx(2 * initial[i]));
  }
  weight.grads.add(lane);
  for (int64_t i = 0; i < initial.size(); ++i) {
    CHECK(weight.var.grad()[i] == doctest::Approx(3 * 2 * initial[i]));
    CHECK(lane.data()[2 + i] == 0);
  }
}

TEST_CASE("recomputation gives the gradients of the plain call, parameters and dropout included") {
  const DropoutOptions drop{0.5, random_key(1, "mlp"), 9, Ids(Shape{3}, {4, 0, 7}), {}};
  Block plain_weight(random_array({6, 5})), recomputed_weight(random_array({6, 5}));
  const auto body = [&](const Var& weight, const Var& x, const Var& gate) {
    return dropout(tanh(matmul(x, weight)), drop) * gate;
  };
  const Array x_value = random_array({3, 2, 6}, 2), gate_value = random_array({5}, 3);
  const Var x = Var::leaf(x_value), gate = Var::leaf(gate_value), x2 = Var::leaf(x_value),
            gate2 = Var::leaf(gate_value);
  TapeScope scope;
  const Var y = body(plain_weight.var, exp(x), gate);
  scope.backward(sum(square(y)));
  const Var y2 =
      recompute([&](const std::vector<Var>& v) { return body(recomputed_weight.var, v[0], v[1]); }, {exp(x2), gate2});
  CHECK(scope.tape().size() == 2);
  scope.backward(sum(square(y2)));
  CHECK(identical(y.value(), y2.value()));
  CHECK(identical(x.grad(), x2.grad()));
  CHECK(identical(gate.grad(), gate2.grad()));
  CHECK(identical(plain_weight.grads.dense(), recomputed_weight.grads.dense()));
}

TEST_CASE("one thread and two give the same bits") {
  const Array x0 = random_array({4, 64, 257}), w0 = random_array({257, 96}, 2), k0 = random_array({257, 4}, 3);
  const Ids ids(Shape{4, 64}, std::vector<int32_t>(256, 17));
  const auto run = [&](int count) {
    const Threads threads_used(count);
    const Var x = Var::leaf(x0), w = Var::leaf(w0), k = Var::leaf(k0), table = Var::leaf(random_array({40, 257}, 4));
    TapeScope scope;
    const DropoutOptions drop{0.2, random_key(1, "x"), 0, Ids(Shape{4}, {3, 2, 1, 0}), {}};
    const Var h = dropout(depthwise_causal_conv(x + embedding(table, ids), k, Segments::full(4, 64)), drop);
    const Var y = softmax(silu(h) * sigmoid(x)) + log(softmax(h)) + sum(h, {1}, keep_dims);
    const Var z = transpose(mean(y, {0}) + sum(gelu(y), {0}));
    scope.backward(sum(z) + sum(square(y)) + sum(slice(where(above_zero(x0), y, x), 2, 3, 200)));
    return std::vector<Array>{y.value(), z.value(), x.grad(), k.grad(), table.grad()};
  };
  const auto one = run(1), two = run(2);
  for (size_t i = 0; i < one.size(); ++i) CHECK_MESSAGE(identical(one[i], two[i]), "result " << i);
}
