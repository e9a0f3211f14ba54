// FLASH against PyTorch (tests/parity/systems/flash.py).
#include "tests/nn/systems/gated/parity.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

MixerConfig flash_config_of(const Fixture& fixture, const std::string& name) {
  FlashConfig config;
  read_unit(fixture, name, config);
  config.chunk = std::stoll(option(fixture, name, "chunk"));
  config.local = option(fixture, name, "local_part") == "true";
  config.global = option(fixture, name, "global_part") == "true";
  return config;
}

TEST_CASE("FLASH: PyTorch's outputs and gradients, over three chunk boundaries, for every option") {
  CHECK(check_configurations(Fixture("flash"), flash_config_of) == 12);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
