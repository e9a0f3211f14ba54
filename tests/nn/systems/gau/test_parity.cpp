// The gated attention unit against PyTorch (tests/parity/systems/gau.py).
#include "tests/nn/systems/gated/parity.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

MixerConfig gau_config_of(const Fixture& fixture, const std::string& name) {
  GauConfig config;
  read_unit(fixture, name, config);
  config.paper_length = std::stoll(option(fixture, name, "paper_length"));
  return config;
}

TEST_CASE("GAU: PyTorch's outputs and gradients, for every published form") {
  CHECK(check_configurations(Fixture("gau"), gau_config_of) == 8);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
