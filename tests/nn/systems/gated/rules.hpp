// What a configuration of gau or flash may not ask for.
#pragma once

#include <doctest/doctest.h>

#include <functional>

#include "nn/systems/gated/unit.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

template <class Config>
void check_gated_rules() {
  struct Case {
    std::function<void(GatedUnitConfig&)> change;
    const char* says;
  };
  const std::vector<Case> cases = {
      {[](auto&) {}, ""},
      {[](auto& c) {
         c.kernel = AttentionKernel::softmax;
         c.logits = LogitForm::length;
       },
       "mixer.logits: the softmax kernel takes logits key-dim"},
      {[](auto& c) {
         c.key_dim = 9;
         c.position_bias = RelativeBiasKind::none;
       },
       "mixer.rotary: cannot rotate 9 features: an even number is needed"},
      {[](auto& c) {
         c.key_dim = 9;
         c.position_bias = RelativeBiasKind::rotary;
         c.rotary.enabled = false;
       },
       "mixer.key_dim: the position bias rotary needs an even number"},
  };
  for (const Case& c : cases) {
    Config config;
    c.change(config);
    ProblemText problems("mixer");
    validate(config, {24, 100}, problems);
    CHECK(problems.text() == c.says);
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
