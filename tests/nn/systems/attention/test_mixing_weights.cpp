#include "tests/nn/mixer/mixing_weights.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

void check_mixing_weights(const AttentionConfig& config, bool causal) {
  for (const bool prefixes : {false, causal}) {
    const Subject s(config, causal, ragged_segments(40), prefixes);
    const Array values = columns(s.layer("to_qkv", s.x), {2 * width, width});
    s.check(s.layer("to_out", mixed(s.weights(0), values)), "attention");
  }
}

TEST_CASE("the mixing weights of attention are those it mixes with, of prefixes too; it has no position bias") {
  for (const bool causal : {true, false})
    for (const bool turned : {true, false}) {
      AttentionConfig config;
      config.heads = 5;
      if (turned) config.rotary = {true, 100, RotaryPairs::halves};
      check_mixing_weights(config, causal);
    }
  const Subject attention(AttentionConfig{5}, true, Segments::full(1, 4));
  CHECK(attention.built.module->position_bias(4).empty());
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
