// AFT with an inner width: what every mixer must do.
#include <doctest/doctest.h>

#include "core/ops/ops.hpp"
#include "tests/nn/module_gradients.hpp"
#include "tests/nn/systems/aft/cases.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

std::vector<MixerCase> inner_cases() {
  AftProjections wide = biased, narrow = plain;
  wide.inner = 60;
  narrow.inner = 8;
  return {{"simple, wider", with_projections(AftSimpleConfig{}, wide), 0, true, true},
          {"full, narrower", full_config(PositionBias::factorised, narrow), 0, false, false},
          {"full dense, wider", full_config(PositionBias::dense, wide), 0, false, false},
          {"local, wider", local_config(5, PositionBias::factorised, wide), 5, false, false},
          {"conv, narrower", conv_config(5, 4, narrow), 5, true, false},
          {"conv, wider", conv_config(5, 10, wide), 5, true, false}};
}

TEST_CASE("AFT of an inner width: what every mixer must do") {
  for (const MixerCase& c : inner_cases()) check_mixer(c);
}

TEST_CASE("AFT of an inner width decodes what forward computes") {
  for (const MixerCase& c : inner_cases()) {
    INFO(c.name);
    const auto built = built_mixer(c.config, true, 20);
    const Array x = normal_array({2, 20, width}, 5);
    const Array whole = forward(*built.module, x, Segments::full(2, 20));
    for (const int64_t prefilled : {0, 1, 7, 20}) {
      const auto state = built.module->make_state(2);
      CHECK(relative_error(decoded(*built.module, x, prefilled, *state), whole) < 10 * layer_tolerance);
    }
  }
}

TEST_CASE("aft-conv normalises its taps to a variance of almost 1") {
  const auto built = built_mixer(conv_config(6, 5, plain), true, 20);
  built.store->find("kernel_gain").var.assign(Array(Shape{5}, real{1}));
  built.store->find("kernel_bias").var.assign(Array::zeros(Shape{5}));
  const Array w = built.module->position_bias(20);  // (heads, T, T): the taps are in the last row
  for (int64_t head = 0; head < 5; ++head) {
    double squares = 0;
    for (int64_t lag = 0; lag < 6; ++lag) {
      const double tap = static_cast<double>(w[(head * w.dim(1) + w.dim(1) - 1) * w.dim(2) + w.dim(2) - 1 - lag]);
      squares += tap * tap / 6;
    }
    CHECK(std::abs(squares - 1) < 1e-3);
  }
}

TEST_CASE("what aft computes for a token: two products over the sources within its reach, none where position is 0") {
  const double of_each = 2 * (width + width);
  AftLocalConfig local;
  local.window = 4;
  const MixerCost causal = built_mixer(local, true, 100).module->cost(100);
  CHECK(causal.mixing_flops == 4 * of_each);
  CHECK(causal.decode_flops == 4 * of_each);
  CHECK(built_mixer(local, false, 100).module->cost(100).mixing_flops == 7 * of_each);  // to both sides
  CHECK(built_mixer(local, true, 100).module->cost(3).mixing_flops == 3 * of_each);
  const MixerCost full = built_mixer(AftFullConfig{}, true, 100).module->cost(60);
  CHECK(full.mixing_flops == 30 * of_each);
  CHECK(full.decode_flops == 60 * of_each);
  CHECK(built_mixer(AftFullConfig{}, false, 100).module->cost(60).mixing_flops == 60 * of_each);
  CHECK(built_mixer(AftSimpleConfig{}, true, 100).module->cost(60).mixing_flops == 0);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
