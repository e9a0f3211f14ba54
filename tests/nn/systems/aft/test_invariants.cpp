// The invariants (nn/mixer/README.md) of whole AFT mixers; those of the ops alone are in tests/core, gradients in
// gradcheck_modules.cpp, decoding in test_aft_decode.cpp.
#include <doctest/doctest.h>

#include "core/ops/ops.hpp"
#include "nn/systems/mixer_config.hpp"
#include "tests/nn/systems/aft/cases.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/arrays.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

constexpr int64_t tokens_per_row = 150;  // over two tiles of 64, one of 128, and a ragged tail

/// The largest |K| that this mixer's projection makes of tokens [begin, T).
double largest_key(const ParamStore& store, const Array& x, int64_t begin) {
  const Array projected = linear(Var(tokens(x, begin, x.dim(1))), store.find("to_qkv.weight").var).value();
  const int64_t columns = projected.dim(2), keys = columns - 2 * width;
  double result = 0;
  for (int64_t row = 0; row < projected.size() / columns; ++row)
    for (int64_t key = 0; key < keys; ++key)
      result = std::max(result, std::abs(static_cast<double>(projected[row * columns + width + key])));
  return result;
}

/// x with other tokens from `cut` on, so large that their keys reach +-`key`.
Array with_later_keys(const ParamStore& store, const Array& x, int64_t cut, double key) {
  Array changed = normal_array(x.shape(), 77 + static_cast<uint64_t>(cut));
  std::copy_n(x.data(), cut * width, changed.mutable_data());
  const double factor = key / largest_key(store, changed, cut);
  for (int64_t i = cut * width; i < changed.size(); ++i) changed.mutable_data()[i] *= static_cast<real>(factor);
  return changed;
}

TEST_CASE("AFT: what every mixer must do") {
  for (const MixerCase& c : mixer_cases()) check_mixer(c);
}

TEST_CASE("causality: later tokens, with keys of 1, 100 and 10^4, do not reach earlier outputs") {
  const Array x = normal_array({1, tokens_per_row, width}, 3);
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    for (const MixerCase& c : mixer_cases()) {
      const auto built = built_mixer(c.config, true, tokens_per_row);
      const Array y = forward(*built.module, x, Segments::full(1, tokens_per_row));
      for (const int64_t cut : {1, 63, 64, 65, 100, 128, 149}) {
        for (const double key : {1.0, 100.0, 1e4}) {
          const Array changed = with_later_keys(*built.store, x, cut, key);
          CHECK(largest_key(*built.store, changed, cut) == doctest::Approx(key).epsilon(1e-3));
          const Array z = forward(*built.module, changed, Segments::full(1, tokens_per_row));
          INFO(c.name << ", cut " << cut << ", key " << key);
          if (c.exact_causality) CHECK(identical(tokens(z, 0, cut), tokens(y, 0, cut)));
          CHECK(relative_error(tokens(z, 0, cut), tokens(y, 0, cut)) <= (sizeof(real) == 4 ? 1e-6 : 1e-12));
          CHECK(relative_error(tokens(z, cut, tokens_per_row), tokens(y, cut, tokens_per_row), 1) > 0.01);
        }
      }
    }
  }
}

TEST_CASE("causality: keys that are large but do not make earlier weights underflow") {
  const int64_t short_length = 64;  // one tile, whose maximum is the later key
  const Segments all = Segments::full(1, short_length);
  for (const MixerCase& c : mixer_cases()) {
    const auto built = built_mixer(c.config, true, short_length);
    double worst = 0;
    for (const uint64_t seed : {3, 4}) {
      const Array x = normal_array({1, short_length, width}, seed, 1);
      const Array y = forward(*built.module, x, all);
      for (const int64_t cut : {8, 20, 33, 51}) {
        for (double key = 50; key < 130; key += 2) {
          const Array z = forward(*built.module, with_later_keys(*built.store, x, cut, key), all);
          worst = std::max(worst, relative_error(tokens(z, 0, cut), tokens(y, 0, cut)));
        }
      }
    }
    CHECK_MESSAGE(worst <= (sizeof(real) == 4 ? 1e-6 : 1e-12), c.name, ": ", worst);
  }
}

TEST_CASE("aft-conv starts as aft-simple") {
  const Array x = normal_array({2, 70, width}, 10);
  for (const bool causal : {true, false}) {
    ParamStore simple_store, conv_store;
    const MixerShape shape{width, 70, causal, 1};
    const auto simple = make_mixer(Scope(simple_store, 1), shape, AftSimpleConfig{});
    const auto conv =
        make_mixer(Scope(conv_store, 1), shape, conv_config(5, width, plain));  // a key per channel in both
    const Segments all = Segments::full(2, 70);
    CHECK(relative_error(forward(*conv, x, all), forward(*simple, x, all), 1) <= layer_tolerance);
    conv_store.find("kernel_gain").var.assign(Array({width}, real{1}));
    CHECK(relative_error(forward(*conv, x, all), forward(*simple, x, all), 0.01) > 0.01);
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
