#include <doctest/doctest.h>

#include <cmath>

#include "core/ops/ops.hpp"
#include "tests/nn/systems/quadratic/op_cases.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/ragged.hpp"

using namespace capstan;
using namespace capstan::testing;

TEST_CASE("attention equals its composition in value and gradients, every option, tiles of any length") {
  const Segments segments = ragged_segments(29);
  for (const int64_t length : {1, 3, 8, 0}) {
    INFO("tile " << length);
    for (const AttentionCase& c : attention_cases(length)) check_composition(c, segments, 5, 7);
  }
}

TEST_CASE("attention equals its composition over several tiles of the usual length, narrow and wide heads") {
  for (const auto& kernel : enum_names(AttentionKernel{})) {
    for (const bool causal : {true, false}) {
      check_composition({kernel.value, causal, 0, 2, true, true}, ragged_segments(150), 37, 19);
      check_composition({kernel.value, causal, 0, 1, true, false}, segments_of_lengths({131, 64}, 131), 130, 260);
      check_composition({kernel.value, causal, 70, 2, true, true}, ragged_segments(150), 16, 35);
    }
  }
}

TEST_CASE("packed attention is attention on the parts of the packed projection") {
  const Segments segments = ragged_segments(40);
  for (const bool causal : {true, false}) {
    const AttentionCase c{AttentionKernel::softmax, causal, 0, 3, false, false};
    check_agreement(
        "packed", [&](const std::vector<Var>& in) { return attention_packed(in[0], segments, c.options(segments)); },
        [&](const std::vector<Var>& in) {
          return c.composed(split(in[0], 2, {21, 21, 21}), segments);
        },
        {{4, 40, 63}});
  }
}

TEST_CASE("one token sees itself; padding gives 0 and gets no gradient, and wild numbers in it do no harm") {
  for (const AttentionCase& c : attention_cases()) {
    INFO(c.name());
    if (c.kernel == AttentionKernel::softmax) {
      const Array v = normal_array({2, 1, 4 * c.heads}, 3);
      AttentionOptions options = c.options(Segments::full(2, 1));
      options.output_scale = Array();
      const Array y = attention(Var(v), Var(v), Var(v), Var(), Segments::full(2, 1), options).value();
      CHECK(relative_error(y, v) <= fused_tolerance);
    }
    const Segments segments = ragged_segments(13);
    std::vector<Var> inputs;
    for (const Shape& shape : c.shapes(segments, 5, 6)) inputs.push_back(Var::leaf(normal_array(shape, inputs.size())));
    for (size_t i = 0; i < 3; ++i) {
      Array wild = inputs[i].value().clone();
      for (int64_t token = 0; token < 4 * 13; ++token)
        if (segments.ids()[token] == 0)
          std::fill_n(wild.mutable_data() + token * wild.dim(2), wild.dim(2), static_cast<real>(NAN));
      inputs[i].assign(wild);
    }
    TapeScope scope;
    const Var y = c.fused(inputs, segments);
    Array dy = normal_array(y.shape(), 9);
    scope.tape().backward(std::vector<Var>{y}, {dy});
    const auto zero_in_padding = [&](const Array& x) {
      for (int64_t i = 0; i < x.size(); ++i) {
        if (!std::isfinite(x[i])) return false;
        if (segments.ids()[i / x.dim(2)] == 0 && x[i] != 0) return false;
      }
      return true;
    };
    CHECK(zero_in_padding(y.value()));
    for (size_t i = 0; i < 3; ++i) CHECK(zero_in_padding(inputs[i].grad()));
  }
}

TEST_CASE("nothing but padding, and no token at all") {
  for (const auto& kernel : enum_names(AttentionKernel{})) {
    for (const Segments& segments : {Segments(Ids(Shape{2, 3}, 0)), Segments::full(2, 0), Segments::full(0, 3)}) {
      const AttentionCase c{kernel.value, true, 0, 2, true, true};
      std::vector<Var> inputs;
      for (const Shape& shape : c.shapes(segments, 4, 6))
        inputs.push_back(Var::leaf(normal_array(shape, inputs.size())));
      TapeScope scope;
      const Var y = c.fused(inputs, segments);
      scope.tape().backward(std::vector<Var>{y}, {Array(y.shape(), real{1})});
      for (const Var& input : inputs)
        for (int64_t i = 0; i < input.size(); ++i) CHECK(input.grad()[i] == 0);
      for (int64_t i = 0; i < y.size(); ++i) CHECK(y.value()[i] == 0);
    }
  }
}

TEST_CASE("causality: later tokens, also keys of 10^4, leave every bit of earlier outputs alone") {
  const int64_t length = 150;  // over two tiles
  const Segments segments = Segments::full(1, length);
  for (const AttentionCase& c : attention_cases()) {
    if (!c.causal || c.chunk > 0) continue;
    std::vector<Var> inputs;
    for (const Shape& shape : c.shapes(segments, 8, 6)) inputs.emplace_back(normal_array(shape, inputs.size()));
    const Array y = c.fused(inputs, segments).value();
    for (const int64_t cut : {1, 31, 32, 33, 63, 64, 65, 127, 128, 149}) {
      for (const double size : {1.0, 100.0, 1e4}) {
        std::vector<Var> changed = inputs;
        for (size_t i = 0; i < 3; ++i) {
          Array later = inputs[i].value().clone();
          for (int64_t n = cut * later.dim(2); n < later.size(); ++n)
            later.mutable_data()[n] = static_cast<real>(size * (0.3 - later[n]));
          changed[i] = Var(later);
        }
        const Array z = c.fused(changed, segments).value();
        const bool same = std::equal(y.data(), y.data() + cut * y.dim(2), z.data());
        CHECK_MESSAGE(same, c.name(), ", cut ", cut, ", size ", size);
      }
    }
  }
}

TEST_CASE("softmax of keys of +-10^4 is finite and picks what the composition picks") {
  const int64_t length = 90;
  const Segments segments = ragged_segments(length);
  for (const bool causal : {true, false}) {
    const AttentionCase c{AttentionKernel::softmax, causal, 0, 2, true, false};
    std::vector<Array> values;
    for (const Shape& shape : c.shapes(segments, 8, 6)) values.push_back(normal_array(shape, values.size()));
    for (int64_t i = 0; i < values[1].size(); ++i)
      values[1].mutable_data()[i] = static_cast<real>(i % 3 == 0 ? 1e4 : i % 3 == 1 ? -1e4 : 3);
    const Op fused = [&](const std::vector<Var>& in) { return c.fused(in, segments); };
    const Op composed = [&](const std::vector<Var>& in) { return c.composed(in, segments); };
    const Run a = run(fused, values, false), b = run(composed, values, false);
    // Logits of 10^4 are rounded by 10^4 ulps, in another order here than there.
    const double allowed = sizeof(real) == 4 ? 2e-2 : 1e-8;
    CHECK(relative_error(a.value, b.value) <= allowed);
    CHECK(relative_error(a.grads[2], b.grads[2]) <= allowed);
    // Equal keys win together here: their pull on the query cancels but for rounding, times 10^4.
    for (const Array& grad : a.grads) CHECK(std::isfinite(relative_error(grad, grad)));
  }
}

TEST_CASE("equal numbers of threads give equal bits, also where one document is split among them") {
  const Segments segments = Segments::full(1, 300);
  for (const int count : {1, 2, 3}) {
    const Threads threads_used(count);
    for (const auto& kernel : enum_names(AttentionKernel{})) {
      const AttentionCase c{kernel.value, true, 0, 1, true, false};
      std::vector<Array> values;
      for (const Shape& shape : c.shapes(segments, 16, 24)) values.push_back(normal_array(shape, values.size()));
      const Op fused = [&](const std::vector<Var>& in) { return c.fused(in, segments); };
      const Run first = run(fused, values, false), second = run(fused, values, false);
      const Run expected = run([&](const std::vector<Var>& in) { return c.composed(in, segments); }, values, false);
      CHECK(first.value.to_vector() == second.value.to_vector());
      for (size_t i = 0; i < values.size(); ++i) {
        CHECK(first.grads[i].to_vector() == second.grads[i].to_vector());
        CHECK(relative_error(first.grads[i], expected.grads[i]) <= fused_tolerance);
      }
    }
  }
}

TEST_CASE("visible keys are counted per query") {
  const Segments segments(Ids(Shape{2, 6}, {0, 1, 1, 1, 1, 1, 2, 2, 3, 0, 0, 4}));
  CHECK(visible_counts(segments, true).to_vector() == std::vector<real>{0, 1, 2, 3, 4, 5, 1, 2, 1, 0, 0, 1});
  CHECK(visible_counts(segments, false).to_vector() == std::vector<real>{0, 5, 5, 5, 5, 5, 2, 2, 1, 0, 0, 1});
  CHECK(visible_counts(segments, true, 2).to_vector() == std::vector<real>{0, 1, 2, 1, 2, 1, 1, 2, 1, 0, 0, 1});
  CHECK(visible_counts(segments, false, 2).to_vector() == std::vector<real>{0, 2, 2, 2, 2, 1, 2, 2, 1, 0, 0, 1});
}

TEST_CASE("attention refuses what does not fit, and says so") {
  const Segments segments = Segments::full(2, 5);
  const auto make = [](const Shape& shape) { return Var(Array::zeros(shape)); };
  AttentionOptions options;
  options.heads = 2;
  const Var good = make({2, 5, 8});
  CHECK_THROWS_AS(attention(make({2, 4, 8}), good, good, Var(), segments, options), std::invalid_argument);
  CHECK_THROWS_AS(attention(make({2, 5, 6}), good, good, Var(), segments, options), std::invalid_argument);
  CHECK_THROWS_AS(attention(good, good, make({2, 5, 7}), Var(), segments, options), std::invalid_argument);
  CHECK_THROWS_AS(attention(good, good, good, make({2, 7}), segments, options), std::invalid_argument);
  CHECK_THROWS_AS(attention(good, good, good, make({1, 9}), segments, options), std::invalid_argument);
  CHECK_THROWS_AS(attention_packed(good, segments, options), std::invalid_argument);
  options.row_scale = Array(Shape{2, 4}, real{1});
  CHECK_THROWS_AS(attention(good, good, good, Var(), segments, options), std::invalid_argument);
}
