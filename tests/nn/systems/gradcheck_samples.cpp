// Every mixer against finite differences: input and all parameters, both directions, padding and packed documents.
#include "tests/nn/module_gradients.hpp"
#include "tests/nn/systems/samples.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

void check_both_directions(const MixerCase& c, const Context& context) {
  for (const bool causal : {true, false}) {
    const auto built = built_mixer(c, causal, 13);
    check_gradients(
        c.name + (causal ? ", causal" : ", bidirectional"), *built.store, {4, 13, width},
        [&](const Var& x) { return built.module->forward(x, context); }, 12);
  }
}

TEST_CASE("gradients of every mixer of the variant") {
  const Threads one(1);  // thousands of tiny passes
  for (const MixerCase& c : mixer_samples(5)) check_both_directions(c, {ragged_segments(13)});
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
