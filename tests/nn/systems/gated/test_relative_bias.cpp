// The distance biases of GAU and FLASH.
#include "nn/systems/gated/relative_bias.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "core/autograd/gradcheck.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/weights.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

struct BuiltBias {
  explicit BuiltBias(const RelativeBiasConfig& config) : bias(Scope(store, 1) / "relative_bias", config) {
    redraw(store);
  }
  ParamStore store;
  RelativeBias bias;
};

RelativeBiasConfig config_of(RelativeBiasKind kind, RotaryPairs pairs = RotaryPairs::interleaved, bool causal = false) {
  return {kind, 200, 10, causal, 3, {100, 0, pairs}};
}

/// x turned to `position`, pair by pair, as the definition says.
std::vector<double> turned(const Array& x, double position, const RotaryOptions& options) {
  const int64_t pairs = x.size() / 2;
  std::vector<double> y(static_cast<size_t>(x.size()));
  for (int64_t i = 0; i < pairs; ++i) {
    const bool halves = options.pairs == RotaryPairs::halves;
    const int64_t first = halves ? i : 2 * i, second = halves ? i + pairs : 2 * i + 1;
    const double angle = position * std::pow(options.base, -static_cast<double>(i) / static_cast<double>(pairs));
    const double a = static_cast<double>(x[first]), b = static_cast<double>(x[second]);
    y[static_cast<size_t>(first)] = a * std::cos(angle) - b * std::sin(angle);
    y[static_cast<size_t>(second)] = a * std::sin(angle) + b * std::cos(angle);
  }
  return y;
}

TEST_CASE("rotary bias: b_(i-j) is the product of a turned to i and c turned to j") {
  for (const RotaryPairs pairs : {RotaryPairs::interleaved, RotaryPairs::halves}) {
    const RelativeBiasConfig config = config_of(RelativeBiasKind::rotary, pairs);
    const BuiltBias built(config);
    const int64_t length = 150;
    const Array table = built.bias.for_length(length).value();
    CHECK(table.shape() == Shape{1, 2 * length - 1});
    const Array a = built.store.find("relative_bias.a").var.value(),
                c = built.store.find("relative_bias.c").var.value();
    double worst = 0;
    for (int64_t i = 0; i < length; i += 7) {
      const std::vector<double> query = turned(a, static_cast<double>(i), config.rotary);
      for (int64_t j = 0; j < length; j += 5) {
        const std::vector<double> key = turned(c, static_cast<double>(j), config.rotary);
        double product = 0;
        for (size_t n = 0; n < key.size(); ++n) product += query[n] * key[n];
        worst = std::max(worst, std::abs(product - static_cast<double>(table[length - 1 + i - j])));
      }
    }
    CHECK(worst <= (sizeof(real) == 4 ? 1e-6 : 1e-12));
  }
}

TEST_CASE("T5 buckets: one distance each up to the middle, then logarithmic, the last for all beyond") {
  const auto boundaries = [](bool causal) {
    std::vector<int64_t> starts;  // the first distance of every bucket of the past
    for (int64_t d = 0; d < 400; ++d)
      if (d == 0 || t5_bucket(d, causal) != t5_bucket(d - 1, causal)) starts.push_back(d);
    return starts;
  };
  // Causal: bucket 16 + k starts at 16 * 8^(k/16); bidirectional: 8 + k at 8 * 16^(k/8).
  CHECK(boundaries(true) == std::vector<int64_t>{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                                 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113});
  CHECK(boundaries(false) == std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91});
  CHECK(t5_bucket(1000000, true) == 31);
  for (int64_t d = 1; d < 400; ++d) {
    CHECK(t5_bucket(-d, true) == 0);
    CHECK(t5_bucket(-d, false) == 16 + t5_bucket(d, false));
  }
}

TEST_CASE("the tables of every kind: entry N - 1 + i - j, the same numbers for every N") {
  for (const auto& kind : enum_names(RelativeBiasKind{})) {
    INFO(kind.name);
    const BuiltBias built(config_of(kind.value, RotaryPairs::halves, true));
    CHECK(static_cast<bool>(built.bias) == (kind.value != RelativeBiasKind::none));
    CHECK_FALSE(built.bias.for_length(0));
    if (!built.bias) {
      CHECK_FALSE(built.bias.for_length(3));
      CHECK(built.store.params().empty());
      continue;
    }
    const Array longest = built.bias.for_length(200).value();
    for (const int64_t length : {1, 2, 65, 199}) {
      const Array table = built.bias.for_length(length).value();
      REQUIRE(table.shape() == Shape{1, 2 * length - 1});
      for (int64_t i = 0; i < table.size(); ++i)
        CHECK(table[i] == doctest::Approx(longest[200 - length + i]).epsilon(sizeof(real) == 4 ? 1e-4 : 1e-10));
    }
    if (kind.value == RelativeBiasKind::toeplitz)
      CHECK_THROWS_WITH_AS(built.bias.for_length(201),
                           "relative_bias: 201 positions exceed the 200 of this Toeplitz table", std::invalid_argument);
    else
      CHECK_NOTHROW(built.bias.for_length(201));
  }
}

TEST_CASE("T5 bias: the scale times the bucket's number") {
  for (const bool causal : {true, false}) {
    const BuiltBias built(config_of(RelativeBiasKind::t5, RotaryPairs::halves, causal));
    const Array table = built.bias.for_length(90).value(), buckets = built.store.params()[0].var.value();
    for (int64_t d = -89; d < 90; ++d)
      CHECK(table[89 + d] == doctest::Approx(3 * static_cast<double>(buckets[t5_bucket(d, causal)])).epsilon(1e-6));
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
