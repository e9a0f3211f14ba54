// What the end of a training leaves: the best model, and nothing that only more training needs.
#include <doctest/doctest.h>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
TEST_CASE("a run that has ended keeps its best model, says what it takes, and does nothing when trained once more") {
  const SamplePlace place;
  struct Case {
    const char* name;
    Words settings;
    bool best_is_last, kept;
  };
  const std::vector<Case> cases = {
      {"last", {"train.keep_optimizer=false"}, true, false},
      {"before", "train.keep_optimizer=false train.lr=1e-9 train.monitor=accuracy", false, false},
      {"no-valid", "train.keep_optimizer=false data.valid_fraction=0 train.valid_every=0", true, false},
      {"kept", {}, true, true}};
  for (const auto& [name, settings, best_is_last, kept] : cases) {
    INFO(name);
    const Words command = train_words("classifier.yaml", {std::string("name=") + name}) + settings;
    const std::string run_folder = std::string("runs/") + name, checkpoints = run_folder + "/checkpoints/";
    const Outcome trained = succeed(place, command);
    check_contains(trained.err, {run_folder + ": ", " on disk"});
    CHECK(fs::exists(place / (checkpoints + "last/optimizer.safetensors")) == kept);
    if (kept) continue;
    CHECK(fs::exists(place / (checkpoints + (contains(name, "no-valid") ? "last" : "best") + "/model.safetensors")));
    CHECK(fs::exists(place / (checkpoints + "last/model.safetensors")) == best_is_last);
    succeed(place, {"predict", run_folder, "train.tsv"});
    CHECK(contains(succeed(place, {"verify", run_folder}).out, run_folder + ": whole"));
    const auto content = place.content(checkpoints);
    CHECK(contains(succeed(place, command).err, "nothing to do: this run is finished"));
    CHECK(place.content(checkpoints) == content);
    check_refused(place, name, command + "train.steps=9",
                  "train.keep_optimizer: true ... --set name=NEW train.init_from=");
  }
}

TEST_CASE(
    "a training that was killed at its end, before it removed what resuming needs, does so when it is started again") {
  const TrainedPlace place;  // its runs have kept everything
  const Outcome eval = succeed(place, "eval runs/lm");
  const std::string again = "train --config runs/lm/config.yaml --set train.keep_optimizer=false";
  CHECK(contains(succeed(place, again).err, "nothing to do"));
  CHECK_FALSE(fs::exists(place / "runs/lm/checkpoints/step-4"));
  CHECK_FALSE(fs::exists(place / "runs/lm/checkpoints/step-6/optimizer.safetensors"));
  CHECK(succeed(place, "eval runs/lm").out == eval.out);
  check_contains(succeed(place, "verify runs/lm").out, {"runs/lm: whole", "without what resuming needs"});
  const auto before = place.content("runs/lm/checkpoints");
  succeed(place, again);
  CHECK(place.content("runs/lm/checkpoints") == before);
}

TEST_CASE("a run needs no links: a copy without them is whole, and so is one on a file system that has none") {
  const TrainedPlace place;
  succeed(place, "train --config classify --set name=linear data.train=[train.tsv]");
  succeed(place, "slim runs/lm --output runs/slim");
  for (const auto& entry : fs::recursive_directory_iterator(place / "runs"))
    CHECK_MESSAGE(!entry.is_symlink(), entry.path().string());
}

}  // namespace capstan::testing
