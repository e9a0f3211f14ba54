// The same training command, killed ten times at random moments, for every kind of training; three times over.
#include <doctest/doctest.h>

#include "tests/cli/interruption.hpp"

namespace capstan::testing {
namespace {

TEST_CASE("ten kills at random moments, checkpoint writing included, leave no trace in the weights") {
  int made = 0, while_saving = 0;
  for (const uint32_t seed : {1, 2, 3}) {
    std::mt19937 random(seed);
    for (const Training& training : trainings()) {
      INFO(training.name, ", seed ", seed);
      const Workplace place;
      write_samples(place);
      REQUIRE(run(place, train_command(training, "whole", {"train.save_every=0", "train.steps=400"})).code == 0);
      const Kills kills =
          train_and_kill(place, train_command(training, "killed", {"train.save_every=1", "train.steps=400"}), "killed",
                         10, 300, random);
      check_same_weights(place, "killed", "whole");
      check_same_metrics(place, "killed", "whole");
      made += kills.made;
      while_saving += kills.while_saving;
    }
  }
  MESSAGE(made, " kills, ", while_saving, " of them while a checkpoint was written");
  CHECK(made == 90);
  CHECK(while_saving > 0);
}

}  // namespace
}  // namespace capstan::testing
