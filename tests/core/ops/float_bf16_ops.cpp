// Ops whose weights have bf16 copies: values and gradients near those without, and equal where nothing is rounded.
#include <doctest/doctest.h>

#include "core/fused/feed_forward.hpp"
#include "core/fused/linear.hpp"
#include "core/fused/loss.hpp"
#include "core/kernels/activation.hpp"
#include "tests/support/bf16_cases.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

constexpr int64_t batch = 3, length = 40, in = 70, out = 52;
const Shape x_shape{batch, length, in};

Ids targets() {
  Ids ids(Shape{batch, length});
  for (int64_t i = 0; i < ids.size(); ++i) ids.mutable_data()[i] = static_cast<int32_t>(i * 7 % out);
  return ids;
}

std::vector<Bf16Case> op_cases() {
  const auto forward = [](Activation activation, bool gated) {
    return [=](const std::vector<Var>& v) {
      return (gated ? gated_feed_forward : feed_forward)(v[0], v[1], v[2], v[3], v[4], activation);
    };
  };
  return {
      {"linear", {x_shape, {out, in}, {out}}, {1}, [](auto& v) { return linear(v[0], v[1], v[2]); }},
      {"linear without bias", {x_shape, {out, in}}, {1}, [](auto& v) { return linear(v[0], v[1]); }},
      {"linear, gelu",
       {x_shape, {out, in}, {out}},
       {1},
       [](auto& v) { return linear(v[0], v[1], v[2], Activation::gelu); }},
      {"feed_forward", {x_shape, {out, in}, {out}, {in, out}, {in}}, {1, 3}, forward(Activation::gelu, false)},
      {"gated_feed_forward",
       {x_shape, {2 * out, in}, {2 * out}, {in, out}, {in}},
       {1, 3},
       forward(Activation::silu, true)},
      {"linear_cross_entropy",
       {x_shape, {out, in}},
       {1},
       [](auto& v) {
         CrossEntropyOptions options;
         options.chunk_rows = 50;
         return linear_cross_entropy(v[0], v[1], Var(), targets(), options).sum;
       }},
  };
}

}  // namespace

TEST_CASE("in bf16 values and gradients stay within 1 % of the largest entry, and are not those of float32") {
  for (const Bf16Case& c : op_cases()) check_bf16(c);
}

TEST_CASE("numbers that bf16 holds are multiplied without any loss") {
  const std::vector<Bf16Case> cases = op_cases();
  for (const Bf16Case& c : {cases[0], cases[1]}) {
    const auto expected = results(c, false, representable), got = results(c, true, representable);
    for (size_t i = 0; i < expected.size(); ++i)
      CHECK_MESSAGE(relative_error(got[i], expected[i]) < 2e-6, c.name << " " << i);
  }
}

TEST_CASE("a pullback that saved rounded rows does not keep the float rows") {
  const Array x = normal_array({64, in}, 1);
  const Var weight = Var::leaf(normal_array({out, in}, 2));
  for (const bool bf16 : {false, true}) {
    if (bf16) weight.set_bf16(rounded(weight.value()));
    TapeScope tape;
    Array rows = x.clone();
    const Var y = linear(Var(rows), weight);
    CHECK(rows.unique() == bf16);
  }
}

TEST_CASE("a recomputed op is done in bf16 both times") {
  const Var weight = Var::leaf(normal_array({out, in}, 2));
  weight.set_bf16(rounded(weight.value()));
  const auto run = [&](bool again) {
    const auto body = [&](const std::vector<Var>& v) { return linear(v[0], weight, Var(), Activation::gelu); };
    const Var x = Var::leaf(normal_array(x_shape, 1));
    TapeScope tape;
    const Var y = again ? recompute(body, {x}) : body({x});
    tape.tape().backward({y}, {normal_array(y.shape(), 5)});
    const std::vector<Array> all{y.value(), x.grad(), weight.grad()};
    weight.clear_grad();
    return all;
  };
  const auto expected = run(false), got = run(true);
  for (size_t i = 0; i < expected.size(); ++i) CHECK(relative_error(got[i], expected[i]) == 0);
}
