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
       "mixer.logits: the softmax kernel takes logits key-dim or log-length"},
      {[](auto& c) { c.logits = LogitForm::log_length; }, "mixer.logits: logits log-length are for the softmax kernel"},
      {[](auto& c) {
         c.kernel = AttentionKernel::laplace;
         c.logits = LogitForm::length;
         c.whole_length = true;
       },
       "mixer.logits: the laplace kernel takes compat.whole_length only with a constant n: normaliser paper or, in "
       "flash, chunk"},
      {[](auto& c) {
         c.kernel = AttentionKernel::laplace;
         c.logits = LogitForm::length;
         c.whole_length = true;
         c.normaliser = Normaliser::paper;
       },
       ""},
      {[](auto& c) { c.whole_length = true; }, "mixer.logits: compat.whole_length is for logits length"},
      {[](auto& c) { c.rotary.dims = 7; },
       "mixer.compat.rotary_dims: cannot rotate 7 of 128 features: an even number is needed"},
      {[](auto& c) { c.rotary.dims = 130; },
       "mixer.compat.rotary_dims: cannot rotate 130 of 128 features: an even number is needed"},
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
