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

TEST_CASE("mixers with dropout of attention weights, under a fixed mask") {
  const Threads one(1);
  Context context{ragged_segments(13), /*training=*/true, /*step=*/3, Ids(Shape{4})};
  for (int32_t row = 0; row < 4; ++row) context.examples.mutable_data()[row] = row;
  for (MixerCase& c : mixer_samples(5))
    if (set_option(c.config, "attention_dropout", "0.4")) check_both_directions(c, context);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
