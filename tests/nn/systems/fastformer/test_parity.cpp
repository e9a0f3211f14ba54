// The Fastformer mixer against PyTorch (tests/parity/README.md).
#include <sstream>

#include "core/autograd/tape.hpp"
#include "nn/blocks/block.hpp"
#include "nn/systems/mixer_config.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/fixture.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

FastformerConfig fastformer_config_of(const Fixture& fixture) {
  FastformerConfig config;
  config.heads = fixture.number("heads");
  config.logits = fixture.flag("per_head") ? FastformerLogits::per_head : FastformerLogits::all_features;
  config.bias = fixture.flag("bias");
  config.logit_bias = fixture.flag("logit_bias");
  config.output_projection = fixture.flag("output_projection");
  config.value = fixture.flag("own_values") ? FastformerValue::own : FastformerValue::shared;
  return config;
}

/// One direction and one layout of documents: output, gradient of the input, gradients of all parameters.
void check_case(const Fixture& fixture, const std::string& name) {
  const size_t dot = name.find('.');
  ParamStore store;
  const auto mixer = make_mixer(Scope(store, 1), {fixture.number("width"), 1, name.substr(0, dot) == "causal", 1},
                                fastformer_config_of(fixture));
  fixture.load(store);
  const Var x = Var::leaf(fixture.array("x"));
  TapeScope scope;
  const Var y = mixer->forward(x, {Segments(fixture.ids("segment_ids." + name.substr(dot + 1)))});
  CHECK(relative_error(y.value(), fixture.array(name + ".y")) <= parity_tolerance);
  scope.tape().backward(std::vector<Var>{y}, {fixture.array("dy")});
  CHECK(relative_error(x.grad(), fixture.array(name + ".dx")) <= parity_tolerance);
  for (const Param& param : store.params()) {
    INFO(param.name);
    const double floor = param.options.gauge ? 1 : 1e-30;  // a gauge parameter's gradient is 0 but for rounding
    CHECK(relative_error(param.var.grad(), fixture.array(name + ".gradient." + param.name), floor) <= parity_tolerance);
  }
}

TEST_CASE("fastformer: PyTorch's outputs and gradients") {
  for (const std::string file :
       {"fastformer_all_features", "fastformer_per_head", "fastformer_one_head", "fastformer_own_values"}) {
    const Fixture fixture(file);
    std::istringstream names(fixture.text("cases"));
    int cases = 0;
    for (std::string name; names >> name; ++cases) {
      INFO(file << ", " << name);
      check_case(fixture, name);
    }
    CHECK(cases == 4);
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
