// The AFT mixer against PyTorch (tests/parity/README.md).
#include "tests/support/fixture.hpp"

#include <filesystem>
#include <sstream>

#include "nn/systems/mixer_config.hpp"
#include "tests/nn/systems/aft/cases.hpp"
#include "tests/support/source_dir.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

MixerConfig config_of(const Fixture& fixture) {
  const AftProjections projections{/*bias=*/true, /*key_bias=*/false, fixture.flag("output_projection")};
  const PositionBias position_bias = fixture.flag("dense") ? PositionBias::dense : PositionBias::factorised;
  const auto positioned = [&](auto config) {
    config.position_bias = position_bias;
    if (position_bias == PositionBias::factorised) config.rank = fixture.number("rank");
    return with_projections(config, projections);
  };
  const std::string& variant = fixture.text("variant");
  if (variant == "simple") return with_projections(AftSimpleConfig{}, projections);
  if (variant == "full") return positioned(AftFullConfig{});
  if (variant == "conv") return conv_config(fixture.number("window"), fixture.number("heads"), projections);
  REQUIRE(variant == "local");
  AftLocalConfig local;
  local.window = fixture.number("window");
  return positioned(local);
}

/// One direction and one layout of documents: output, gradient of the input, gradients of all parameters.
void check_case(const Fixture& fixture, const Fixture& inputs, const std::string& name) {
  const size_t dot = name.find('.');
  const bool causal = name.substr(0, dot) == "causal";
  ParamStore store;
  const auto mixer = make_mixer(Scope(store, 1), {fixture.number("width"), fixture.number("max_length"), causal, 1},
                                config_of(fixture));
  fixture.load(store);
  const Var x = Var::leaf(inputs.array("x"));
  TapeScope scope;
  const Var y = mixer->forward(x, {Segments(inputs.ids("segment_ids." + name.substr(dot + 1)))});
  CHECK(relative_error(y.value(), fixture.array(name + ".y")) <= parity_tolerance);
  scope.tape().backward(std::vector<Var>{y}, {inputs.array("dy")});
  CHECK(relative_error(x.grad(), fixture.array(name + ".dx")) <= parity_tolerance);
  for (const Param& param : store.params()) {
    INFO(param.name);
    CHECK(relative_error(param.var.grad(), fixture.array(name + ".gradient." + param.name)) <= parity_tolerance);
  }
}

TEST_CASE("AFT: PyTorch's outputs and gradients, for every file and case there is") {
  const Fixture inputs("aft_inputs");
  int files = 0, cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("tests/parity/fixtures"))) {
    const std::string file = entry.path().stem().string();
    if (file.rfind("aft_", 0) != 0 || file == "aft_inputs") continue;
    const Fixture fixture(file);
    ++files;
    std::istringstream names(fixture.text("cases"));
    for (std::string name; names >> name; ++cases) {
      INFO(file << ", " << name);
      check_case(fixture, inputs, name);
    }
  }
  CHECK(files == 7);
  CHECK(cases == 24);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
