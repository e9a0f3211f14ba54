// The smallest values that a configuration allows are values that train.
#include <doctest/doctest.h>

#include "tests/cli/samples.hpp"

namespace capstan::testing {
namespace {

TEST_CASE("one head, one layer, one step, a batch of one: allowed, and it trains") {
  const Workplace place;
  write_samples(place);
  for (const char* const mixer :
       {"{type: attention, heads: 1}", "{type: fastformer, heads: 1}", "{type: aft-conv, heads: 1, window: 2}",
        "{type: aft-local, window: 1, rank: 1}", "{type: gau, key_dim: 2}", "{type: flash, chunk: 1, key_dim: 2}"}) {
    INFO(mixer);
    for (const char* const config : {"lm", "classifier"})
      succeed(place, {"train", "--config", std::string(config) + ".yaml", "--set",
                      "model.layers.0.mixer=" + std::string(mixer), "train.steps=1", "train.batch_size=1",
                      "train.save_every=0", "name=" + std::string(config)});
    std::filesystem::remove_all(place / "runs");
  }
}

}  // namespace
}  // namespace capstan::testing
