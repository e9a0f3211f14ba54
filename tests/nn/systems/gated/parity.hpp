// GAU and FLASH against PyTorch: fixtures that hold one system in several configurations.
#pragma once

#include <sstream>
#include <string>

#include "nn/systems/gated/unit.hpp"
#include "tests/nn/mixer/mixer_suite.hpp"
#include "tests/support/fixture.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

template <class E>
E named(const std::string& name) {
  for (const auto& entry : enum_names(E{}))
    if (name == entry.name) return entry.value;
  FAIL("no enumerator " << name);
  return E{};
}

/// `<name>.<key>` of the metadata.
inline std::string option(const Fixture& fixture, const std::string& name, const char* key) {
  return fixture.text(name + "." + key);
}

/// The options that both systems have.
inline void read_unit(const Fixture& fixture, const std::string& name, GatedUnitConfig& config) {
  const auto text = [&](const char* key) { return option(fixture, name, key); };
  const int64_t dims = std::stoll(text("rotary_dims"));
  const bool interleaved = text("interleaved") == "true";
  config.kernel = named<AttentionKernel>(text("kernel"));
  config.whole_length = text("logits") == "whole-length";
  config.logits = config.whole_length ? LogitForm::length : named<LogitForm>(text("logits"));
  config.normaliser = named<Normaliser>(text("normaliser"));
  config.position_bias = named<RelativeBiasKind>(text("position_bias"));
  config.rotary = {dims > 0, dims, std::stod(text("rotary_base")),
                   interleaved ? RotaryPairs::interleaved : RotaryPairs::halves};
  config.bias = text("bias") == "true";
  config.key_dim = std::stoll(text("key_dim"));
  config.expansion = std::stod(text("expansion"));
  config.t5_scale = std::stod(text("t5_scale"));
}

/// Of the tensor's largest entry.
constexpr double gated_tolerance = sizeof(real) == 4 ? parity_tolerance : 1e-12;

/// Output, gradient of the input, gradients of all parameters, in one direction.
inline void check_direction(const Fixture& fixture, const std::string& name, const MixerConfig& config, bool causal) {
  ParamStore store;
  const auto mixer =
      make_mixer(Scope(store, 1), {fixture.number("width"), fixture.number("max_length"), causal, 1}, config);
  for (const Param& param : store.params()) param.var.assign(fixture.array(name + ".parameter." + param.name));
  const std::string place = name + (causal ? ".causal" : ".bidirectional");
  const Var x = Var::leaf(fixture.array("x"));
  TapeScope scope;
  const Var y = mixer->forward(x, {Segments(fixture.ids("segment_ids"))});
  const auto compare = [&](const std::string& what, const Array& ours) {
    const double error = relative_error(ours, fixture.array(place + "." + what), 1e-6);
    CHECK_MESSAGE(error <= gated_tolerance, place, ".", what, ": ", error);
  };
  compare("y", y.value());
  scope.tape().backward(std::vector<Var>{y}, {fixture.array("dy")});
  compare("dx", x.grad());
  for (const Param& param : store.params()) compare("gradient." + param.name, param.var.grad());
}

/// All configurations of a fixture, as config_of(fixture, name) reads them, in both directions; returns their number.
template <class ConfigOf>
int check_configurations(const Fixture& fixture, const ConfigOf& config_of) {
  std::istringstream names(fixture.text("configs"));
  int configurations = 0;
  for (std::string name; names >> name; ++configurations)
    for (const bool causal : {false, true}) check_direction(fixture, name, config_of(fixture, name), causal);
  return configurations;
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
