// The invariants every mixer must keep (docs/design.md), for the AFT ops: causality, padding, extreme keys, and queries
// that see nothing. Gradients: gradcheck_op.cpp; lengths and decoding: test_invariants.cpp.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/nn/systems/aft/op_cases.hpp"
#include "tests/support/compare.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

constexpr int64_t channels = 35, length = 150;  // over two tiles of 64 and a ragged tail

std::vector<Var> parameters_of(const AftCase& c) {
  std::vector<Var> parameters;
  for (size_t i = 0; i < c.parameters.size(); ++i) parameters.emplace_back(normal_array(c.parameters[i], 20 + i));
  return parameters;
}

Array run_aft(const AftCase& c, const Array& qkv, const Segments& segments) {
  std::vector<Var> inputs = parameters_of(c);
  inputs.insert(inputs.begin(), Var(qkv));
  return c.fused(inputs, segments).value();
}

int64_t key_columns(const AftCase& c) { return c.packed - 2 * channels; }

/// Largest difference of rows [begin, end) of the first document, relative to max(1, max |y|).
double difference(const Array& a, const Array& b, int64_t begin, int64_t end) {
  double largest = 0, scale = 1;
  for (int64_t i = begin * channels; i < end * channels; ++i) {
    const double x = a[i], y = b[i];
    if (!std::isfinite(x) || !std::isfinite(y)) return INFINITY;
    largest = std::max(largest, std::abs(x - y));
    scale = std::max(scale, std::abs(y));
  }
  return largest / scale;
}

}  // namespace

TEST_CASE("causality: later tokens, and later keys of 100 and 10^4, do not reach earlier outputs") {
  for (const AftCase& c : aft_cases(channels, length)) {
    if (!c.causal) continue;
    const Array qkv = normal_array({1, length, c.packed}, 3);
    const Array y = run_aft(c, qkv, Segments::full(1, length));
    for (const int64_t cut : {1, 63, 64, 77, 128, 149}) {
      for (const double key : {0.3, 100.0, 1e4}) {
        Array changed = qkv.clone();
        for (int64_t t = cut; t < length; ++t) {
          real* const row = changed.mutable_data() + t * c.packed;
          for (int64_t i = 0; i < c.packed; ++i) row[i] = static_cast<real>(0.7 - 1.3 * row[i]);
          for (int64_t i = channels; i < channels + key_columns(c); ++i) row[i] += static_cast<real>(key);
        }
        const double error = difference(run_aft(c, changed, Segments::full(1, length)), y, 0, cut);
        // Bit equality for the scan; the tiles have block-local references and an exact fallback behind them.
        const double allowed = c.parameters.empty() ? 0 : sizeof(real) == 4 ? 1e-6 : 1e-12;
        CHECK_MESSAGE(error <= allowed, c.name, " cut ", cut, " key ", key, ": ", error);
      }
    }
  }
}

TEST_CASE("padding: neither more of it, nor its side, nor batch mates change a valid output") {
  const double allowed = sizeof(real) == 4 ? 1e-5 : 1e-11;
  for (const AftCase& c : aft_cases(channels, length)) {
    const int64_t valid = 90;
    const Array alone = normal_array({1, valid, c.packed}, 4);
    const Array y = run_aft(c, alone, Segments::full(1, valid));
    for (const int64_t left : {int64_t{0}, int64_t{17}}) {
      Array batch = normal_array({2, length, c.packed}, 5, 30);  // wild numbers in the padding and in the mate
      Ids ids(Shape{2, length}, 0);
      std::copy_n(alone.data(), alone.size(), batch.mutable_data() + (length + left) * c.packed);
      std::fill_n(ids.mutable_data() + length + left, valid, 3);
      std::fill_n(ids.mutable_data() + length + left + valid, length - left - valid, 4);  // packed behind it
      std::fill_n(ids.mutable_data(), 130, 1);
      const Array padded = run_aft(c, batch, Segments(ids));
      const Array mine = padded.reshape(Shape{2 * length, channels}).rows(length + left, length + left + valid);
      CHECK_MESSAGE(difference(mine, y, 0, valid) <= allowed, c.name, " left ", left);
    }
  }
}

namespace {

/// The definition in double, from the very numbers the op gets.
Array exact(const Array& qkv, const Array& w, bool causal, int64_t window) {
  const int64_t tokens = qkv.dim(1);
  Array y(Shape{1, tokens, channels});
  const auto at = [&](int64_t t, int64_t column) { return static_cast<double>(qkv[t * 3 * channels + column]); };
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t c = 0; c < channels; ++c) {
      const auto bias = [&](int64_t s) {
        return w.empty() || (window > 0 && std::abs(t - s) >= window) ? 0.0 : static_cast<double>(w[t * w.dim(1) + s]);
      };
      const int64_t end = causal ? t + 1 : tokens;
      double maximum = -INFINITY, total = 0, sum = 0;
      for (int64_t s = 0; s < end; ++s) maximum = std::max(maximum, at(s, channels + c) + bias(s));
      for (int64_t s = 0; s < end; ++s) {
        const double p = std::exp(at(s, channels + c) + bias(s) - maximum);
        total += p;
        sum += p * at(s, 2 * channels + c);
      }
      y.mutable_data()[t * channels + c] = static_cast<real>(sum / total / (1 + std::exp(-at(t, c))));
    }
  }
  return y;
}

}  // namespace

TEST_CASE("extreme keys: finite, and equal to double evaluated from the same logits") {
  const double allowed = sizeof(real) == 4 ? 1e-5 : 1e-10;
  for (const double spread : {30.0, 100.0, 1e4}) {
    const Array w = normal_array({length, length}, 6, 2);
    Array qkv = normal_array({1, length, 3 * channels}, 7);
    for (int64_t t = 0; t < length; ++t)
      for (int64_t c = 0; c < channels; ++c)
        qkv.mutable_data()[t * 3 * channels + channels + c] *= static_cast<real>(2 * spread);
    for (const bool causal : {true, false}) {
      const Segments all = Segments::full(1, length);
      CHECK(difference(aft_simple(Var(qkv), all, causal).value(), exact(qkv, Array(), causal, 0), 0, length) <=
            allowed);
      for (const int64_t window : {0, 1, 20}) {
        const Array y = aft_dense(Var(qkv), Var(w), all, causal, window).value();
        const double error = difference(y, exact(qkv, w, causal, window), 0, length);
        CHECK_MESSAGE(error <= allowed, "spread ", spread, " causal ", causal, " window ", window, ": ", error);
      }
    }
  }
}

TEST_CASE("extreme keys leave finite gradients equal to the composition's") {
  const Segments segments = ragged_segments(29);
  std::vector<AftCase> cases = aft_cases(channels, 29);
  for (AftCase& c : aft_cases(channels, 29, 7)) cases.push_back(std::move(c));
  for (const AftCase& c : cases) {
    Array values = normal_array({4, 29, c.packed}, 8);
    for (int64_t t = 0; t < 4 * 29; ++t)
      for (int64_t i = channels; i < channels + key_columns(c); ++i) values.mutable_data()[t * c.packed + i] *= 300;
    std::vector<Array> grads;
    for (const auto& op : {c.fused, c.composed}) {
      std::vector<Var> inputs{Var::leaf(values)};
      for (const Var& parameter : parameters_of(c)) inputs.push_back(Var::leaf(parameter.value()));
      TapeScope scope;
      const Var y = op(inputs, segments);
      scope.tape().backward(std::vector<Var>{y}, {normal_array(y.shape(), 9)});
      for (const Var& input : inputs) grads.push_back(input.has_grad() ? input.grad() : Array::zeros(input.shape()));
    }
    // The composition forms K + w, which rounds w beside keys of some hundreds in float.
    const double allowed = sizeof(real) == 4 ? 1e-4 : 1e-11;
    for (size_t i = 0; i < grads.size() / 2; ++i)
      CHECK_MESSAGE(relative_error(grads[i], grads[i + grads.size() / 2], 0.01) <= allowed, c.name, " input ", i);
  }
}

TEST_CASE("a bias of -25 beside keys (0, 0, 20): the published e^w - 1 form cancels to 0/0 here") {
  Array qkv = Array::zeros(Shape{1, 3, 3});
  real* const x = qkv.mutable_data();
  x[2 * 3 + 1] = 20;                                                        // K = (0, 0, 20)
  for (int64_t t = 0; t < 3; ++t) x[t * 3 + 2] = static_cast<real>(t + 1);  // V = (1, 2, 3)
  Array w = Array::zeros(Shape{3, 3});
  w.mutable_data()[2 * 3 + 2] = -25;
  const double weight = std::exp(-5.0), expected = 0.5 * (1 + 2 + 3 * weight) / (2 + weight);
  for (const int64_t window : {0, 1, 2})
    CHECK(aft_dense(Var(qkv), Var(w), Segments::full(1, 3), true, window).value()[2] ==
          doctest::Approx(expected).epsilon(1e-6));
  const Array taps(Shape{1, 1}, real{-25});
  const double last = std::exp(-5.0), conv = 0.5 * (1 + 2 + 3 * last) / (2 + last);
  CHECK(aft_conv(Var(qkv), Var(taps), Segments::full(1, 3), true).value()[2] == doctest::Approx(conv).epsilon(1e-6));
}

TEST_CASE("AFT ops refuse what does not fit, naming it") {
  const Segments segments = Segments::full(2, 6);
  const Var qkv(Array::zeros(Shape{2, 6, 12}));
  const Var u(Array::zeros(Shape{4, 2}));
  CHECK_THROWS_WITH_AS(aft_factorised(qkv, u, u, segments, true, 0),
                       "aft_factorised: a document has 6 tokens, but u and v have only 4 positions",
                       std::invalid_argument);
  CHECK_THROWS_AS(aft_simple(Var(Array::zeros(Shape{2, 6, 13})), segments, true), std::invalid_argument);
  CHECK_THROWS_AS(aft_simple(Var(Array::zeros(Shape{2, 5, 12})), segments, true), std::invalid_argument);
  CHECK_THROWS_AS(aft_dense(qkv, Var(Array::zeros(Shape{8, 7})), segments, true, 0), std::invalid_argument);
  CHECK_THROWS_AS(aft_dense(qkv, Var(Array::zeros(Shape{8, 8})), segments, true, -1), std::invalid_argument);
  CHECK_THROWS_AS(aft_conv(qkv, Var(Array::zeros(Shape{1, 4})), segments, false), std::invalid_argument);
}
