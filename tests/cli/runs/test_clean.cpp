// capstan clean: what it removes, what it says, and what works as before.
#include <doctest/doctest.h>

#include "core/io/file.hpp"
#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace fs = std::filesystem;

TEST_CASE("clean removes what only resuming needs, and says so; the run predicts, evaluates and verifies as before") {
  const TrainedPlace place;
  const auto before = place.content("runs");
  const Outcome eval = succeed(place, "eval runs/lm");
  const Outcome dry = succeed(place, "clean --dry-run runs/lm runs/classifier");
  CHECK(place.content("runs") == before);
  check_contains(dry.out, {"runs/lm/checkpoints/step-4  ", "runs/lm/checkpoints/step-6/optimizer.safetensors  ",
                           "would be removed; lost: resuming this run"});
  const Outcome cleaned = succeed(place, "clean runs/lm runs/classifier");
  CHECK(lines_of(cleaned.out).size() == lines_of(dry.out).size());
  CHECK_FALSE(fs::exists(place / "runs/lm/checkpoints/step-4"));
  CHECK_FALSE(fs::exists(place / "runs/lm/checkpoints/step-6/optimizer.safetensors"));
  CHECK(succeed(place, "eval runs/lm").out == eval.out);
  const Outcome verify = succeed(place, "verify runs/lm");
  check_contains(verify.out, {"runs/lm: whole", "without what resuming needs"});
  // Nothing is left to do for its own command; more steps need what was removed.
  CHECK(contains(succeed(place, "train --config lm.yaml").err, "nothing to do"));
  check_refused(place, "more steps", "train --config lm.yaml --set train.steps=9",
                "removed when the run ended ... by capstan clean ... train.init_from=runs/lm");
  succeed(place, "train --config lm.yaml --set name=next train.init_from=runs/lm");
  CHECK(contains(succeed(place, "clean runs/lm").out, "runs/lm: nothing to remove"));
  // Sweeps and searches beside runs are cleaned, too.
  fs::create_directories(place / "runs/sweep");
  fs::rename(place / "runs/next", place / "runs/sweep/next");
  CHECK(contains(succeed(place, "clean runs").out, "runs/sweep/next: "));
}

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
    Words command = Words{"train", "--config", "classifier.yaml", "--set", std::string("name=") + name} + settings;
    const std::string run_folder = std::string("runs/") + name, checkpoints = run_folder + "/checkpoints/";
    const Outcome trained = succeed(place, command);
    check_contains(trained.err, {run_folder + ": ", " on disk"});
    CHECK(fs::exists(place / (checkpoints + "last/optimizer.safetensors")) == kept);
    if (kept) continue;
    const bool has_best = fs::exists(place / (checkpoints + "best"));
    CHECK(fs::exists(place / (checkpoints + (has_best ? "best" : "last") + "/model.safetensors")));
    CHECK(fs::exists(place / (checkpoints + "last/model.safetensors")) == best_is_last);
    succeed(place, {"predict", run_folder, "train.tsv"});
    CHECK(contains(succeed(place, {"verify", run_folder}).out, run_folder + ": whole"));
    const auto content = place.content(checkpoints);
    CHECK(contains(succeed(place, command).err, "nothing to do: this run is finished"));
    CHECK(place.content(checkpoints) == content);
    command.emplace_back("train.steps=9");
    check_refused(place, name, command, "train.keep_optimizer: true ... --set name=NEW train.init_from=");
  }
}

TEST_CASE("clean refuses runs that have not reached their end, are damaged or are none, and cleans the others") {
  const TrainedPlace place;
  std::string config = place.read("runs/lm/config.yaml");
  config.replace(config.find("steps: 6"), 8, "steps: 8");
  place.write("runs/lm/config.yaml", config);
  check_refused(place, "unfinished", "clean runs", "runs/lm ... --unfinished");
  CHECK_FALSE(fs::exists(place / "runs/classifier/checkpoints/step-4"));
  CHECK(fs::exists(place / "runs/lm/checkpoints/step-4"));
  succeed(place, "clean --unfinished runs/lm");
  CHECK_FALSE(fs::exists(place / "runs/lm/checkpoints/step-4"));
  std::string bytes = place.read("runs/lm/checkpoints/step-6/model.safetensors");
  bytes[bytes.size() / 2] ^= 4;
  place.write("runs/lm/checkpoints/step-6/model.safetensors", bytes);
  check_refused(place, "damaged", "clean --unfinished runs/lm", "nothing is removed");
  check_refused(place, "no run", "clean text", "text");
}

TEST_CASE("clean removes nothing where the links to the best and the last checkpoint are lost or lead elsewhere") {
  const TrainedPlace place;
  const fs::path best = place / "runs/lm/checkpoints/best";
  fs::remove(best);
  fs::create_symlink(place / "runs/lm/checkpoints/step-4", best);
  const auto before = place.content("runs/lm/checkpoints");
  check_refused(place, "an absolute link", "clean runs/lm", "checkpoints/best ... nothing is removed");
  fs::remove(best);
  check_refused(place, "no link", "clean runs/lm", "checkpoints/best is missing ... capstan train");
  fs::create_symlink("/etc", place / "runs/lm/outside");
  const Outcome outside = check_refused(place, "a link outside", "clean runs/lm", "runs/lm/outside ... remove it");
  CHECK_FALSE(contains(outside.err, "--trust"));
  fs::remove(place / "runs/lm/outside");
  CHECK(place.content("runs/lm/checkpoints").size() == before.size() - 1);
  succeed(place, "train --config lm.yaml");  // makes the link anew
  succeed(place, "clean runs/lm");
}

TEST_CASE("a run that is being trained is not cleaned") {
  const TrainedPlace place;
  FileLock training((place / "runs/lm/.lock").string());
  REQUIRE(training.try_lock());
  check_refused(place, "locked", "clean runs/lm", "runs/lm ... another process is training");
  succeed(place, "clean --dry-run runs/lm");
}

}  // namespace capstan::testing
