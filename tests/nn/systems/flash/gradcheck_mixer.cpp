// FLASH against finite differences: of its input and of all its parameters.
#include <doctest/doctest.h>

#include "tests/nn/module_gradients.hpp"
#include "tests/nn/systems/flash/cases.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

TEST_CASE("FLASH: all options crossed, both directions, padding and packed documents, past three chunks") {
  const Context ragged{ragged_segments(19)};
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    for (const bool causal : {true, false}) {
      for (MixerCase c : flash_cases()) {
        FlashConfig& config = std::get<FlashConfig>(c.config);
        config.chunk = config.chunk == 1 ? 1 : config.chunk % 2 == 0 ? 4 : 5;
        const auto built = built_mixer(c.config, causal, 19);
        check_gradients(
            c.name + (causal ? ", causal" : ", bidirectional"), *built.store, {4, 19, width},
            [&](const Var& x) { return built.module->forward(x, ragged); }, 12);
      }
    }
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
