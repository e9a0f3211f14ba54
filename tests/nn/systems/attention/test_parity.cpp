// The attention mixer against PyTorch (tests/parity/systems/attention.py), with every kind of positions and bias.
#include <sstream>

#include "tests/nn/mixer/mixer_suite.hpp"
#include "tests/support/fixture.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

AttentionConfig attention_config_of(const Fixture& fixture, const std::string& name) {
  AttentionConfig config;
  config.heads = fixture.number("heads");
  config.rotary.dims = fixture.number(name + ".rotary_dims");
  config.rotary.enabled = config.rotary.dims > 0;
  config.rotary.base = std::stod(fixture.text(name + ".rotary_base"));
  config.rotary.pairs = fixture.flag(name + ".interleaved") ? RotaryPairs::interleaved : RotaryPairs::halves;
  config.bias = fixture.flag(name + ".bias");
  config.key_bias = fixture.flag(name + ".key_bias");
  config.output_projection = fixture.flag(name + ".output_projection");
  return config;
}

TEST_CASE("attention: PyTorch's outputs and gradients, with and without rotary positions and biases") {
  const Fixture fixture("attention");
  const Segments segments(fixture.ids("segment_ids"));
  int cases = 0;
  for (const std::string& name : words(fixture.text("configs"))) {
    for (const bool causal : {false, true}) {
      ++cases;
      const std::string prefix = name + (causal ? ".causal" : ".bidirectional");
      INFO(prefix);
      ParamStore store;
      const auto mixer =
          make_mixer(Scope(store, 1), {fixture.number("width"), 13, causal, 1}, attention_config_of(fixture, name));
      for (const Param& param : store.params()) param.var.assign(fixture.array(name + ".parameter." + param.name));
      const Var x = Var::leaf(fixture.array("x"));
      TapeScope scope;
      const Var y = mixer->forward(x, {segments});
      CHECK(relative_error(y.value(), fixture.array(prefix + ".y")) <= parity_tolerance);
      scope.tape().backward(std::vector<Var>{y}, {fixture.array("dy")});
      CHECK(relative_error(x.grad(), fixture.array(prefix + ".dx")) <= parity_tolerance);
      for (const Param& param : store.params()) {
        INFO(param.name);
        // The gradient of a gauge parameter is 0 but for rounding.
        const double floor = param.options.gauge ? 1 : 1e-30;
        CHECK(relative_error(param.var.grad(), fixture.array(prefix + ".gradient." + param.name), floor) <=
              parity_tolerance);
      }
    }
  }
  CHECK(cases == 10);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
