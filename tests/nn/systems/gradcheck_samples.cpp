// Every mixer against finite differences: input and all parameters, both directions, padding and packed documents.
#include "tests/nn/module_gradients.hpp"
#include "tests/nn/systems/samples.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

TEST_CASE("gradients of every mixer of the variant") {
  const Threads one(1);  // thousands of tiny passes
  for (const MixerCase& c : mixer_samples(5)) check_mixer_gradients(c, ragged_segments(13), 12);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
