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

RelativeBiasConfig config_of(RelativeBiasKind kind, RotaryPairs pairs) { return {kind, 200, 10, {100, pairs}}; }

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

TEST_CASE("the tables of every kind: entry N - 1 + i - j, the same numbers for every N") {
  for (const auto& kind : enum_names(RelativeBiasKind{})) {
    INFO(kind.name);
    const BuiltBias built(config_of(kind.value, RotaryPairs::halves));
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

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
