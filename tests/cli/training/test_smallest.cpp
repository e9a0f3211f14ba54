// The smallest and the largest values that a configuration allows are values that train.
#include <doctest/doctest.h>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {

TEST_CASE_FIXTURE(Samples, "one head, one layer, one step, a batch of one: allowed, and it trains") {
  for (const char* const mixer :
       {"{type: attention, heads: 1}", "{type: fastformer, heads: 1}", "{type: aft-conv, heads: 1, window: 2}",
        "{type: aft-local, window: 1, rank: 1}", "{type: gau, key_dim: 2}", "{type: flash, chunk: 1, key_dim: 2}"}) {
    INFO(mixer);
    for (const char* const config : {"lm.yaml", "classifier.yaml"})
      succeed(place, train_words(config, {"model.layers.0.mixer=" + std::string(mixer), "train.steps=1",
                                          "train.batch_size=1", "train.save_every=0"}));
    fs::remove_all(place / "runs");
  }
}

TEST_CASE_FIXTURE(Samples, "1024 threads, more than OpenBLAS has work memory for: the results of one") {
  place.write("linear.yaml",
              "{name: linear, data: {type: labelled, train: [train.tsv], valid_fraction: 0.2, tokenizer: word}, "
              "model: {type: linear-classifier, words: [1, 2]}, train: {steps: 1}}");
  for (const std::string model : {"lm", "linear"}) {
    INFO(model);
    const Words train = "train --config " + model + ".yaml --set seed=1" + (model == "lm" ? " model.width=64" : "");
    for (const std::string threads : {"1", "1024"}) {
      const std::string said = succeed(place, train + ("threads=" + threads + " name=" + model + threads)).err;
      CHECK_FALSE(contains(said, "OpenBLAS warning"));
      succeed(place, {"eval", "runs/" + model + threads});
    }
    CHECK(same_model(place, model + "1", model + "1024"));
  }
}

}  // namespace capstan::testing
