// Fastformer's op: equal to its composition, and the invariants every mixer must keep (docs/design.md). Gradients:
// gradcheck_op.cpp; decoding and the whole mixer: tests/nn.
#include <doctest/doctest.h>

#include <cmath>

#include "nn/systems/fastformer/composed.hpp"
#include "nn/systems/fastformer/op.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/ragged.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

struct Size {
  int64_t width, heads;
  bool own_values = false;
  int64_t stride() const { return (own_values ? 3 : 2) * width; }
};
// Heads of a few channels, of one, and of more than one unit of work; widths that are no multiple of a register.
const std::vector<Size> sizes{{35, 5}, {35, 35}, {70, 1}, {140, 2}, {6, 3}, {35, 5, true}, {140, 2, true}};

std::vector<Shape> input_shapes(const Size& size, const Segments& segments) {
  const Shape logits{size.heads, size.width};
  return {{segments.batch(), segments.length(), size.stride()}, logits, logits, {size.width, size.width}, {size.width}};
}

FastformerWeights weights_of(const std::vector<Var>& in) { return {in[1], in[2], in[3], in[4]}; }

Op fused(const Segments& segments, bool causal) {
  return [=](const auto& in) { return fastformer(in[0], weights_of(in), segments, causal); };
}
Op composed(const Segments& segments, bool causal) {
  return [=](const auto& in) { return fastformer_composed(in[0], weights_of(in), segments, causal); };
}

std::vector<Var> random_inputs(const Size& size, const Segments& segments) {
  std::vector<Var> inputs;
  for (const Shape& shape : input_shapes(size, segments)) inputs.emplace_back(random_array(shape, 1 + inputs.size()));
  return inputs;
}

std::string describe_case(const Size& size, bool causal) {
  return (causal ? "causal " : "bidirectional ") + std::to_string(size.heads) + " heads of width " +
         std::to_string(size.width) + (size.own_values ? ", own values" : "");
}

/// Rows [begin, end) of the first document.
Array first_rows(const Array& y, int64_t end) { return y.reshape({y.dim(0) * y.dim(1), y.dim(2)}).rows(0, end); }

}  // namespace

TEST_CASE("fastformer equals the composition that defines it, in value and gradients") {
  for (const bool causal : {true, false}) {
    for (const Size& size : sizes) {
      for (const Segments& segments : {Segments::full(2, 29), ragged_segments(29)})
        check_agreement(describe_case(size, causal), fused(segments, causal), composed(segments, causal),
                        input_shapes(size, segments));
    }
  }
}

TEST_CASE("fastformer over a long document, and without the bias of to_r") {
  const Segments segments = Segments::full(1, 211);
  const Shape logits{2, 22};
  for (const bool causal : {true, false})
    check_agreement(
        describe_case({22, 2}, causal),
        [=](const auto& in) {
          return fastformer(in[0], {in[1], in[2], in[3], Var()}, segments, causal);
        },
        [=](const auto& in) {
          return fastformer_composed(in[0], {in[1], in[2], in[3], Var()}, segments, causal);
        },
        {{1, 211, 44}, logits, logits, {22, 22}}, 1);
}

TEST_CASE("one token sees itself alone; padding gives exact zeros and no gradient") {
  for (const Size size : {Size{35, 5}, Size{35, 5, true}})
    for (const bool causal : {true, false}) {
      for (const Segments& segments : {Segments::full(3, 1), Segments(Ids(Shape{2, 4}, 0)), ragged_segments(9)}) {
        std::vector<Array> inputs;
        for (const Var& input : random_inputs(size, segments)) inputs.push_back(input.value());
        const Run ours = run(fused(segments, causal), inputs, false),
                  wanted = run(composed(segments, causal), inputs, false);
        for (int64_t token = 0; token < segments.ids().size(); ++token) {
          if (segments.ids()[token] != 0) continue;
          for (int64_t c = 0; c < size.stride(); ++c) CHECK(ours.grads[0][token * size.stride() + c] == 0);
          for (int64_t c = 0; c < size.width; ++c) CHECK(ours.value[token * size.width + c] == 0);
        }
        if (segments.valid() == 0) {
          for (const Array& grad : ours.grads) CHECK(identical(grad, Array::zeros(grad.shape())));
          continue;
        }
        CHECK(difference(ours.value, wanted.value) <= tolerance);
        for (size_t i = 0; i < inputs.size(); ++i) CHECK(difference(ours.grads[i], wanted.grads[i]) <= tolerance);
      }
    }
}

TEST_CASE("causality: later tokens, up to 10^4 times as large, leave every bit of earlier outputs") {
  const int64_t length = 150;
  const Segments segments = Segments::full(1, length);
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    for (const Size& size : sizes) {
      const std::vector<Var> in = random_inputs(size, segments);
      const Array y = fused(segments, true)(in).value();
      for (const int64_t cut : {1, 63, 64, 149}) {
        for (const double factor : {1.0, 100.0, 1e4}) {
          std::vector<Var> other = in;
          Array changed = random_array(in[0].shape(), 77, factor);
          std::copy_n(in[0].value().data(), cut * size.stride(), changed.mutable_data());
          other[0] = Var(changed);
          const Array z = fused(segments, true)(other).value();
          CHECK_MESSAGE(identical(first_rows(z, cut), first_rows(y, cut)), describe_case(size, true), ", cut ", cut);
          CHECK(!identical(z, y));
        }
      }
    }
  }
}

namespace {

/// The definition in double, from the very numbers the op gets; one head.
std::vector<double> exact(const std::vector<Var>& in, int64_t width, bool causal) {
  const int64_t length = in[0].dim(1);
  const auto packed = [&](int64_t t, int64_t c) { return double{in[0].value()[t * 2 * width + c]}; };
  using Rows = std::vector<std::vector<double>>;
  const auto pool = [&](const Rows& values, const Array& weight) {
    Rows pooled(values.size(), std::vector<double>(values[0].size(), 0));
    std::vector<double> logits;
    for (const auto& row : values) {
      double logit = 0;
      for (size_t c = 0; c < row.size(); ++c) logit += double{weight[static_cast<int64_t>(c)]} * row[c];
      logits.push_back(logit / std::sqrt(static_cast<double>(width)));
    }
    for (size_t t = 0; t < values.size(); ++t) {
      const size_t end = causal ? t + 1 : values.size();
      const double largest = *std::max_element(logits.begin(), logits.begin() + static_cast<long>(end));
      double total = 0;
      for (size_t i = 0; i < end; ++i) {
        const double e = std::exp(logits[i] - largest);
        total += e;
        for (size_t c = 0; c < pooled[t].size(); ++c) pooled[t][c] += e * values[i][c];
      }
      for (double& number : pooled[t]) number /= total;
    }
    return pooled;
  };
  Rows q, k;
  for (int64_t t = 0; t < length; ++t) {
    q.emplace_back();
    k.emplace_back();
    for (int64_t c = 0; c < width; ++c) {
      q.back().push_back(packed(t, c));
      k.back().push_back(packed(t, width + c));
    }
  }
  const auto times = [](const Rows& a, const Rows& b) {
    Rows product = a;
    for (size_t t = 0; t < a.size(); ++t)
      for (size_t c = 0; c < a[t].size(); ++c) product[t][c] *= b[t][c];
    return product;
  };
  const Rows p = times(pool(q, in[1].value()), k);
  const Rows u = times(pool(p, in[2].value()), q);
  std::vector<double> y;
  for (size_t t = 0; t < u.size(); ++t)
    for (int64_t row = 0; row < width; ++row) {
      double sum = q[t][static_cast<size_t>(row)] + double{in[4].value()[row]};
      for (int64_t c = 0; c < width; ++c) sum += double{in[3].value()[row * width + c]} * u[t][static_cast<size_t>(c)];
      y.push_back(sum);
    }
  return y;
}

}  // namespace

TEST_CASE(
    "unguarded exp: logits up to +-10^4 give finite outputs and gradients, equal to double from the same numbers") {
  const int64_t width = 19, length = 70;
  for (const bool causal : {true, false}) {
    for (const double spread : {30.0, 1e4}) {
      std::vector<Array> inputs;
      const std::vector<Var> drawn = random_inputs({width, 1}, Segments::full(1, length));
      for (const Var& input : drawn) inputs.push_back(input.value());
      // Each pool's logits read one feature, so that no rounding of a sum is blown up: q_0 reaches +-spread, and so
      // does p_1 = qbar_1 k_1 with qbar_1 = 1.
      const real scale = static_cast<real>(std::sqrt(static_cast<double>(width)));
      for (const size_t logits : {1, 2}) {
        inputs[logits] = Array::zeros({1, width});
        inputs[logits].mutable_data()[logits - 1] = scale;
      }
      Array qk = inputs[0].clone();
      for (int64_t t = 0; t < length; ++t) {
        real* const row = qk.mutable_data() + t * 2 * width;
        row[0] = static_cast<real>(std::ldexp(std::round(std::ldexp(row[0], 4)), -4) * spread / 2);
        row[1] = 1;
        row[width + 1] = static_cast<real>(std::ldexp(std::round(std::ldexp(row[width + 1], 4)), -4) * spread / 2);
      }
      inputs[0] = qk;
      const Run ours = run(fused(Segments::full(1, length), causal), inputs, false);
      const std::vector<double> wanted = exact(std::vector<Var>(inputs.begin(), inputs.end()), width, causal);
      double error = 0, largest = 0;
      for (int64_t i = 0; i < ours.value.size(); ++i) {
        CHECK(std::isfinite(ours.value[i]));
        error = std::max(error, std::abs(double{ours.value[i]} - wanted[static_cast<size_t>(i)]));
        largest = std::max(largest, std::abs(wanted[static_cast<size_t>(i)]));
      }
      CHECK_MESSAGE(error / largest <= tolerance, "spread ", spread, " causal ", causal);
      for (const Array& grad : ours.grads)
        for (int64_t i = 0; i < grad.size(); ++i) REQUIRE(std::isfinite(grad[i]));
    }
  }
}

TEST_CASE("going on from a state, in pieces of any length, gives what one pass gives") {
  for (const Size size : {Size{70, 2}, Size{70, 2, true}}) {
    const int64_t batch = 3, length = 40;
    const std::vector<Var> in = random_inputs(size, Segments::full(batch, length));
    const Array y = fused(Segments::full(batch, length), true)(in).value();
    FastformerState state(batch, size.heads, size.width);
    for (const std::vector<int64_t>& cuts : {std::vector<int64_t>{0, 40}, {0, 1, 2, 40}, {0, 17, 17, 39, 40}}) {
      state.reset();
      for (size_t i = 1; i < cuts.size(); ++i) {
        const int64_t begin = cuts[i - 1], count = cuts[i] - begin;
        Array part(Shape{batch, count, size.stride()}), wanted(Shape{batch, count, size.width});
        for (int64_t row = 0; row < batch; ++row) {
          std::copy_n(in[0].value().data() + (row * length + begin) * size.stride(), count * size.stride(),
                      part.mutable_data() + row * count * size.stride());
          std::copy_n(y.data() + (row * length + begin) * size.width, count * size.width,
                      wanted.mutable_data() + row * count * size.width);
        }
        CHECK(difference(fastformer_continue(part, weights_of(in), state), wanted) <= tolerance);
      }
    }
  }
}

TEST_CASE("fastformer refuses what does not fit, naming it") {
  const Segments segments = Segments::full(2, 6);
  const auto zeros = [](const Shape& shape) { return Var(Array::zeros(shape)); };
  const Var qk = zeros({2, 6, 8}), logits = zeros({2, 4}), square = zeros({4, 4});
  const auto make = [&](const Var& x, const FastformerWeights& w) { return fastformer(x, w, segments, true); };
  CHECK_NOTHROW(make(qk, {logits, logits, square, Var()}));
  CHECK_NOTHROW(make(zeros({2, 6, 12}), {logits, logits, square, Var()}));
  CHECK_THROWS_AS(make(zeros({2, 6, 7}), {logits, logits, square, Var()}), std::invalid_argument);
  CHECK_THROWS_AS(make(zeros({2, 5, 8}), {logits, logits, square, Var()}), std::invalid_argument);
  CHECK_THROWS_WITH_AS(make(qk, {zeros({3, 4}), zeros({3, 4}), square, Var()}),
                       "fastformer: query_logits (3, 4) and key_logits (3, 4) are not both (H, 4) with H dividing 4",
                       std::invalid_argument);
  CHECK_THROWS_AS(make(qk, {logits, zeros({1, 4}), square, Var()}), std::invalid_argument);
  CHECK_THROWS_AS(make(qk, {logits, logits, zeros({4, 3}), Var()}), std::invalid_argument);
  CHECK_THROWS_AS(make(qk, {logits, logits, square, zeros({3})}), std::invalid_argument);
  FastformerState state(1, 2, 4);
  CHECK_THROWS_AS(fastformer_continue(qk.value(), {logits, logits, square, Var()}, state), std::invalid_argument);
}
