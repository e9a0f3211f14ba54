// What a configuration with GAU or FLASH may not ask for.
#include <doctest/doctest.h>

#include <functional>

#include "core/base/error.hpp"
#include "models/config.hpp"

namespace capstan::testing {
namespace {

LanguageModelConfig model_of(const MixerConfig& mixer) {
  LanguageModelConfig config;
  config.width = 24;
  config.max_length = 100;
  config.layers.resize(1);
  config.layers[0].mixer = mixer;
  return config;
}

std::string problems_of(const MixerConfig& mixer) {
  try {
    check_config(model_of(mixer));
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST_CASE("rules of gated units: kernels with logits they do not have, odd numbers of features that turn") {
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
       "model.layers.0.mixer.logits: the softmax kernel takes logits key-dim or log-length"},
      {[](auto& c) { c.logits = LogitForm::log_length; },
       "model.layers.0.mixer.logits: logits log-length are for the softmax kernel"},
      {[](auto& c) {
         c.kernel = AttentionKernel::laplace;
         c.logits = LogitForm::whole_length;
       },
       "model.layers.0.mixer.logits: the laplace kernel takes logits whole-length with the normaliser paper only"},
      {[](auto& c) { c.rotary.dims = 7; },
       "model.layers.0.mixer.rotary_dims: cannot rotate 7 of 128 features: an even number is needed"},
      {[](auto& c) { c.rotary.dims = 130; },
       "model.layers.0.mixer.rotary_dims: cannot rotate 130 of 128 features: an even number is needed"},
      {[](auto& c) {
         c.key_dim = 9;
         c.position_bias = RelativeBiasKind::rotary;
         c.rotary.enabled = false;
       },
       "model.layers.0.mixer.key_dim: the position bias rotary needs an even number"},
  };
  for (const Case& c : cases) {
    GauConfig gau;
    c.change(gau);
    CHECK(problems_of(gau) == c.says);
    FlashConfig flash;
    c.change(flash);
    CHECK(problems_of(flash) == c.says);
  }
}

TEST_CASE("a Toeplitz bias of GAU knows max_length positions; that of FLASH a chunk's, at any length") {
  for (const auto& bias : enum_names(RelativeBiasKind{})) {
    GauConfig gau;
    gau.position_bias = bias.value;
    CHECK(position_limit(model_of(gau)).has_value() == (bias.value == RelativeBiasKind::toeplitz));
    FlashConfig flash;
    flash.position_bias = bias.value;
    CHECK_FALSE(position_limit(model_of(flash)).has_value());
  }
}

}  // namespace
}  // namespace capstan::testing
