// The smallest and the largest values that a configuration allows are values that train.
#include <doctest/doctest.h>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {

TEST_CASE("one head, one layer, one step, a batch of one: allowed, and it trains") {
  const SamplePlace place;
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

TEST_CASE("1024 threads, more than OpenBLAS has work memory for: the results of one") {
  const SamplePlace place;
  place.write("linear.yaml",
              "{name: linear, data: {type: labelled, train: [train.tsv], valid_fraction: 0.2, tokenizer: word}, "
              "model: {type: linear-classifier, words: [1, 2]}, train: {steps: 1}}");
  const std::vector<std::string> linear{"train", "--config", "linear.yaml", "--set"},
      lm{"train", "--config", "lm.yaml", "--set", "model.width=64"};
  for (const auto& [name, train] : {std::pair{"lm", lm}, {"linear", linear}}) {
    INFO(name);
    std::string first;
    for (const char* const threads : {"1", "1024"}) {
      Words words = train + Words{std::string("threads=") + threads, "name=" + std::string(name) + threads};
      const std::string said = succeed(place, words).err;
      CHECK_FALSE(contains(said, "OpenBLAS warning"));
      const std::string folder = "runs/" + std::string(name) + threads;
      const std::string weights = place.read(folder + "/checkpoints/last/model.safetensors");
      if (first.empty()) first = weights;
      const bool same = weights == first;
      CHECK(same);
      succeed(place, {"eval", folder});
    }
  }
}

}  // namespace capstan::testing
