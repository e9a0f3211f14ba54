// Every primitive op against finite differences. Extents reach past two SIMD registers plus one (35 doubles).
#include <doctest/doctest.h>

#include "core/autograd/gradcheck.hpp"
#include "core/ops/ops.hpp"
#include "support/arrays.hpp"

using namespace capstan;

namespace {

using Inputs = std::vector<Var>;

struct OpCase {
  const char* name;
  std::vector<Shape> inputs;
  std::function<Var(const Inputs&)> f;
  GradcheckOptions options = {};
};

GradcheckOptions away(double point, double distance = 1e-3) {
  GradcheckOptions options;
  options.away = {point, distance};
  return options;
}

void check_cases(const std::vector<OpCase>& cases) {
  for (const OpCase& c : cases) {
    const GradcheckReport report = gradcheck(c.f, c.inputs, c.options);
    CHECK_MESSAGE(report.ok, std::string(c.name) << ": " << report.worst);
  }
}

/// 0/1 by a fixed draw.
Array mask_of(const Shape& shape, uint64_t seed = 7) { return above_zero(random_array(shape, seed)); }

/// where() by a mask of this shape.
auto chosen_by(const Shape& mask) {
  return [mask](const Inputs& v) { return where(mask_of(mask), v[0], v[1]); };
}

auto transposed(const Axes& order) {
  return [order](const Inputs& v) { return transpose(v[0], order); };
}

Var positive(const Var& x) { return square(x) + 0.5; }

}  // namespace

TEST_CASE("gradients of element-wise ops of two operands") {
  using F = Var (*)(const Var&, const Var&);
  const std::vector<std::pair<const char*, F>> ops = {{"add", add}, {"sub", sub}, {"mul", mul}};
  const std::vector<std::vector<Shape>> shapes = {{{}, {}},
                                                  {{35}, {35}},
                                                  {{35}, {}},
                                                  {{}, {35}},
                                                  {{3, 35}, {35}},
                                                  {{35}, {3, 35}},
                                                  {{3, 35}, {3, 1}},
                                                  {{3, 1}, {1, 35}},
                                                  {{2, 3, 4, 5}, {4, 1}},
                                                  {{2, 1, 4, 1}, {3, 1, 5}},
                                                  {{1, 5}, {1, 5}},
                                                  {{2, 0, 3}, {1, 3}},
                                                  {{2, 3, 1}, {1, 3, 5}}};
  for (const auto& [name, op] : ops)
    for (const auto& pair : shapes) check_cases({{name, pair, [f = op](const Inputs& v) { return f(v[0], v[1]); }}});
  for (const auto& pair : shapes)
    check_cases({{"div", pair, [](const Inputs& v) { return div(v[0], positive(v[1])); }}});
}

TEST_CASE("gradients of element-wise ops of one operand") {
  const std::vector<Shape> one = {{35}};
  check_cases({
      {"neg", one, [](const Inputs& v) { return -v[0]; }},
      {"exp", one, [](const Inputs& v) { return exp(v[0]); }},
      {"log", one, [](const Inputs& v) { return log(positive(v[0])); }},
      {"sqrt", one, [](const Inputs& v) { return sqrt(positive(v[0])); }},
      {"square", one, [](const Inputs& v) { return square(v[0]); }},
      {"tanh", one, [](const Inputs& v) { return tanh(v[0]); }},
      {"sigmoid", one, [](const Inputs& v) { return sigmoid(v[0]); }},
      {"silu", one, [](const Inputs& v) { return silu(v[0] * 3); }},
      {"gelu", one, [](const Inputs& v) { return gelu(v[0] * 3); }},
      {"erf", one, [](const Inputs& v) { return erf(v[0]); }},
      {"relu", one, [](const Inputs& v) { return relu(v[0]); }, away(0)},
      {"squared_relu", one, [](const Inputs& v) { return squared_relu(v[0]); }},
      {"scalars", {{2, 17}}, [](const Inputs& v) { return 2.0 - (v[0] * 3 + 1) / 4 - (0.5 + v[0]) * 0.25; }},
      {"rank 0", {{}}, [](const Inputs& v) { return gelu(tanh(v[0])); }},
      {"rank 4", {{2, 3, 2, 3}}, [](const Inputs& v) { return silu(exp(v[0])); }},
      {"empty", {{0, 4}}, [](const Inputs& v) { return tanh(relu(v[0])); }},
      {"where", {{3, 35}, {35}}, chosen_by({3, 35})},
      {"where, mask per row", {{3, 35}, {}}, chosen_by({3, 1})},
      {"where, mask larger", {{5}, {3, 1}}, chosen_by({2, 3, 5})},
  });
}

TEST_CASE("gradients of reductions") {
  const std::vector<Shape> shape = {{3, 4, 35}};
  const std::vector<Axes> axes = {{}, {0}, {1}, {-1}, {0, 1}, {1, 2}, {0, 2}, {2, 0}, {0, 1, 2}};
  using F = Var (*)(const Var&, const Axes&, const ReduceOptions&);
  const std::vector<std::pair<const char*, F>> ops = {{"sum", sum}, {"mean", mean}};
  for (const auto& [name, op] : ops) {
    for (const Axes& over : axes) {
      check_cases({{name, shape, [f = op, &over](const Inputs& v) { return f(v[0], over, {}); }},
                   {name, shape, [f = op, &over](const Inputs& v) { return f(v[0] * 2, over, keep_dims); }}});
    }
  }
  check_cases({
      {"sum to a scalar", shape, [](const Inputs& v) { return sum(v[0]); }},
      {"mean to a scalar", shape, [](const Inputs& v) { return mean(square(v[0])); }},
      {"sum, rank 4",
       {{2, 3, 2, 5}},
       [](const Inputs& v) {
         return sum(v[0], {0, 2});
       }},
      {"sum of nothing", {{3, 0}}, [](const Inputs& v) { return sum(v[0], {1}); }},
      {"long sums", {{1100, 2}}, [](const Inputs& v) { return sum(square(v[0]), {0}); }},
  });
}

TEST_CASE("gradients of matrix products") {
  constexpr Transpose no = Transpose::no, yes = Transpose::yes;
  struct Batches {
    Shape a, b;
  };
  const std::vector<Batches> batches = {
      {{}, {}}, {{2}, {}}, {{}, {2}}, {{2}, {2}}, {{2, 3}, {3}}, {{2, 1}, {3}}, {{2, 1, 2}, {1, 3, 2}}};
  for (const Batches& batch : batches) {
    for (const Transpose ta : {no, yes}) {
      for (const Transpose tb : {no, yes}) {
        const Shape a = ta == no ? batch.a.append(5).append(7) : batch.a.append(7).append(5);
        const Shape b = tb == no ? batch.b.append(7).append(3) : batch.b.append(3).append(7);
        check_cases({{"matmul", {a, b}, [=](const Inputs& v) { return matmul(v[0], v[1], {ta, tb}); }}});
      }
    }
  }
  check_cases({{"matmul, ragged", {{17, 35}, {35, 19}}, [](const Inputs& v) { return matmul(v[0], v[1]); }},
               {"matmul, no rows", {{0, 3}, {3, 2}}, [](const Inputs& v) { return matmul(v[0], v[1]); }},
               {"matmul, no terms", {{2, 0}, {0, 3}}, [](const Inputs& v) { return matmul(v[0], v[1]); }},
               {"matmul, one operand twice", {{4, 4}}, [](const Inputs& v) {
                  return matmul(v[0], v[0], {no, yes});
                }}});
}

TEST_CASE("gradients of ops on shapes") {
  check_cases({
      {"reshape",
       {{2, 3, 4}},
       [](const Inputs& v) {
         return reshape(v[0], {4, -1});
       }},
      {"transpose, last two", {{2, 17, 35}}, [](const Inputs& v) { return transpose(v[0]); }},
      {"transpose, all axes", {{2, 3, 1, 4}}, transposed({3, 0, 2, 1})},
      {"transpose, two pairs", {{2, 3, 1, 4}}, transposed({1, 0, 3, 2})},
      {"transpose, three axes", {{2, 3, 1, 4}}, transposed({2, 1, 3, 0})},
      {"transpose, heads", {{2, 5, 3, 4}}, transposed({0, 2, 1, 3})},
      {"slice, first axis", {{5, 3}}, [](const Inputs& v) { return slice(v[0], 0, 1, 3); }},
      {"slice, last axis", {{3, 2, 5}}, [](const Inputs& v) { return slice(v[0], -1, 2, 5); }},
      {"slice, empty", {{3, 5}}, [](const Inputs& v) { return slice(v[0], 1, 2, 2); }},
      {"overlapping slices", {{6, 3}}, [](const Inputs& v) { return slice(v[0], 0, 0, 4) * slice(v[0], 0, 2, 6); }},
      {"concatenate", {{2, 3}, {2, 1}, {2, 0}, {2, 35}}, [](const Inputs& v) { return concatenate(v, 1); }},
      {"concatenate, first axis",
       {{2, 3}, {4, 3}},
       [](const Inputs& v) {
         return concatenate({v[0], v[1], v[0]}, 0);
       }},
      {"split",
       {{3, 10}},
       [](const Inputs& v) {
         const auto parts = split(v[0], 1, {4, 2, 4});
         return parts[0] * parts[2] + sum(parts[1]);
       }},
      {"split, first axis",
       {{6, 2}},
       [](const Inputs& v) {
         const auto parts = split(v[0], 0, {3, 3});
         return parts[0] * parts[1];
       }},
      {"split, a piece unused",
       {{3, 6}},
       [](const Inputs& v) {
         return square(split(v[0], 1, {2, 0, 4})[2]);
       }},
      {"broadcast_to",
       {{3, 1}},
       [](const Inputs& v) {
         return broadcast_to(v[0], {2, 3, 35}) * broadcast_to(v[0], {3, 1});
       }},
      {"broadcast_to, a scalar",
       {{}},
       [](const Inputs& v) {
         return broadcast_to(v[0], {4, 5});
       }},
  });
}

TEST_CASE("gradients of ops with indices") {
  const Ids rows(Shape{2, 3}, {4, 0, 4, 1, 2, 4});
  check_cases({
      {"embedding", {{5, 35}}, [&](const Inputs& v) { return embedding(v[0], rows); }},
      {"gather, first axis", {{5, 3}}, [&](const Inputs& v) { return gather(v[0], rows); }},
      {"gather, middle axis", {{2, 5, 70}}, [&](const Inputs& v) { return gather(v[0], rows, 1); }},
      {"gather, last axis", {{2, 5}}, [&](const Inputs& v) { return gather(v[0], rows, -1); }},
      {"gather, nothing", {{5, 3}}, [](const Inputs& v) { return gather(v[0], Ids(Shape{0})); }},
  });
}

TEST_CASE("gradients of softmax, with and without a mask") {
  const Array hidden_row(Shape{3, 1}, {1, 0, 1});
  const auto plain = [](const Inputs& v) { return softmax(v[0] * 3); };
  const auto with = [](const Array& mask) { return [mask](const Inputs& v) { return softmax(v[0] * 3, mask); }; };
  check_cases({{"plain", {{2, 3, 35}}, plain},
               {"one entry", {{3, 1}}, plain},
               {"masked", {{2, 3, 35}}, with(mask_of({2, 3, 35}))},
               {"one mask for all rows", {{4, 17}}, with(mask_of({17}))},
               {"hidden rows", {{2, 3, 9}}, with(hidden_row)},
               {"nothing visible", {{2, 9}}, with(Array::zeros(Shape{2, 9}))}});
}

TEST_CASE("gradients of dropout and the depthwise convolution") {
  const DropoutOptions options{0.4, random_key(5, "here"), 3, Ids(Shape{2}, {8, 1}), {}};
  const Segments packed(Ids(Shape{2, 7}, {1, 1, 1, 2, 2, 2, 0, 1, 1, 0, 0, 0, 0, 0}));
  check_cases({
      {"dropout", {{2, 3, 35}}, [&](const Inputs& v) { return dropout(v[0], options); }},
      {"dropout of rows", {{2, 35}}, [&](const Inputs& v) { return dropout(v[0], options); }},
      {"conv",
       {{2, 7, 35}, {35, 3}},
       [](const Inputs& v) { return depthwise_causal_conv(v[0], v[1], Segments::full(2, 7)); }},
      {"conv, kernel longer than x",
       {{1, 3, 2}, {2, 5}},
       [](const Inputs& v) { return depthwise_causal_conv(v[0], v[1], Segments::full(1, 3)); }},
      {"conv within documents",
       {{2, 7, 70}, {70, 4}},
       [&](const Inputs& v) { return depthwise_causal_conv(v[0], v[1], packed); }},
  });
}

TEST_CASE("gradients that arrive at one value several times are added up") {
  check_cases({
      {"x + x", {{35}}, [](const Inputs& v) { return v[0] + v[0]; }},
      {"reshape(x) + x", {{35}}, [](const Inputs& v) { return reshape(v[0], {35}) + v[0]; }},
      {"y + y * reshape(y)",
       {{5, 7}},
       [](const Inputs& v) {
         const Var y = tanh(v[0]);
         return y + y * reshape(reshape(y, {35}), {5, 7}) + y;
       }},
      {"slices of one sum",
       {{6, 2}},
       [](const Inputs& v) {
         const Var y = v[0] + v[0];
         return slice(y, 0, 0, 3) + slice(y, 0, 2, 5) + slice(y, 0, 0, 3) * 2;
       }},
      {"concatenation with itself",
       {{3, 2}},
       [](const Inputs& v) {
         return concatenate({v[0], v[0], exp(v[0])}, 0);
       }},
  });
}

TEST_CASE("gradcheck rejects a wrong pullback and names the worst entry") {
  // A softmax whose pullback forgets the sum: right when projected on ones, wrong on anything else.
  const auto broken = [](const Inputs& v) {
    const Array y = softmax(v[0]).value();
    return make_var("broken", y, {v[0]}, [y](const Array& g, const Needs&) -> Grads {
      Array dx(y.shape());
      for (int64_t i = 0; i < y.size(); ++i) dx.mutable_data()[i] = y[i] * g[i];
      return {dx};
    });
  };
  const GradcheckReport report = gradcheck(broken, {Shape{2, 5}});
  CHECK_FALSE(report.ok);
  CHECK(report.worst.rfind("input 0 [", 0) == 0);
  CHECK(report.worst.find("analytic") != std::string::npos);

  // One entry of many, off by 1e-5 of its value; and a gradient that is not a number.
  const auto slightly = [](double factor) {
    return [factor](const Inputs& v) {
      return make_var("slightly", v[0].value(), {v[0]}, [factor](const Array& g, const Needs&) -> Grads {
        Array dx = g.clone();
        dx.mutable_data()[3] *= factor;
        return {dx};
      });
    };
  };
  CHECK(gradcheck(slightly(1), {Shape{9}}).ok);
  CHECK_FALSE(gradcheck(slightly(1 + 1e-5), {Shape{9}}).ok);
  CHECK_FALSE(gradcheck(slightly(NAN), {Shape{9}}).ok);
  CHECK(gradcheck(slightly(NAN), {Shape{9}}).worst.rfind("input 0 [3]", 0) == 0);
}

TEST_CASE("gradcheck of leaves: in place, sampled") {
  const Var x = Var::leaf(random_array({4, 6})), weight = Var::leaf(random_array({3, 6}, 2)),
            bias = Var::leaf(random_array({3, 1}, 3));
  const Array before = weight.value().clone();
  const auto f = [&] { return softmax(matmul(x, weight, {Transpose::no, Transpose::yes}) + reshape(bias, {1, 3})); };
  GradcheckOptions options;
  const std::vector<std::pair<std::string, Var>> leaves = {{"x", x}, {"weight", weight}, {"bias", bias}};
  CHECK(gradcheck(f, leaves, options).ok);
  CHECK(identical(weight.value(), before));
  options.samples = 2;
  CHECK(gradcheck(f, leaves, options).ok);
}
