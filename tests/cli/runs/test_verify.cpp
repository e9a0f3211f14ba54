// capstan verify: every file of a run, and what could be lost.
#include <doctest/doctest.h>

#include "core/io/file.hpp"
#include "tests/cli/support/samples.hpp"
#include "train/checkpoints/saved_checkpoint.hpp"

namespace capstan::testing {
namespace {

const std::string checkpoints = "runs/lm/checkpoints/";

/// Takes the checksum of a file away.
void take_checksum(const Workplace& place, const std::string& name) { edit(place, name, "xxh3_128", "some_key"); }

Outcome verify(const Workplace& place, const Words& runs = {"runs/lm"}) {
  Outcome outcome = run(place, Words("verify") + runs);
  INFO(outcome.err);
  CHECK(indecency(outcome) == "");
  return outcome;
}

TEST_CASE_FIXTURE(Trained, "verify: whole runs, exit code 0, nothing written") {
  const auto before = place.content("runs");
  const Outcome outcome = verify(place, {"runs/lm", "runs/classifier"});
  CHECK(outcome.code == 0);
  check_contains(outcome.out, {"runs/lm: whole", "runs/classifier: whole", "config.yaml", "tokenizer.json",
                               "classes.txt", "metrics.jsonl", "checkpoints/run.json", "step 6 was saved last",
                               "checkpoints/step-4", "checkpoints/step-6", "checksums agree; the best"});
  for (const std::string none : {"DAMAGED", "without a checksum", "since step"})
    CHECK_FALSE(contains(outcome.out, none));
  CHECK(place.content("runs") == before);
}

TEST_CASE_FIXTURE(Trained, "verify says what has changed since the last checkpoint and may have") {
  edit(place, "runs/lm/config.yaml", "  lr: ", "  lr: 0.125 #");
  place.write("runs/lm/metrics.jsonl", place.read("runs/lm/metrics.jsonl") + "{\"event\":\"valid\",\"step\":6}\n");
  const Outcome outcome = verify(place);
  CHECK(outcome.code == 0);
  check_contains(outcome.out, {"runs/lm: whole", "since step 6 was saved, train.lr was ", ", is now 0.125",
                               "9 lines, 1 of them since step 6 was saved, without a checksum"});
}

TEST_CASE("verify: each kind of damage is found") {
  struct Row {
    const char* name;
    std::function<void(const Workplace&)> damage;
    Says says;
  };
  const auto flip = [](const std::string& file) { return [=](const Workplace& p) { flip_bit(p, file); }; };
  const auto drop = [](const std::string& file) { return [=](const Workplace& p) { fs::remove_all(p / file); }; };
  const auto take = [](const std::string& file) {  // of another run
    return [=](const Workplace& p) {
      fs::copy(p / ("runs/other/checkpoints/step-6/" + file), p / (checkpoints + "step-6/" + file),
               fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    };
  };
  const TrainedPlace trained;
  succeed(trained, "train --config lm.yaml --set name=other seed=2");
  const std::vector<Row> rows = {
      {"model", flip(checkpoints + "step-6/model.safetensors"), "checkpoints/step-6 ... model.safetensors"},
      {"optimizer", flip(checkpoints + "step-6/optimizer.safetensors"), "optimizer.safetensors"},
      {"state", flip(checkpoints + "step-4/state.json"), "checkpoints/step-4 ... state.json"},
      {"a model without a checksum",
       [](const Workplace& p) { take_checksum(p, checkpoints + "step-6/model.safetensors"); },
       "model.safetensors: the file is not the one that was saved"},
      {"an optimizer without a checksum",
       [](const Workplace& p) { take_checksum(p, checkpoints + "step-4/optimizer.safetensors"); },
       "optimizer.safetensors: the file is not the one that was saved"},
      {"weights of another run at this step", take("model.safetensors"),
       "step-6 ... model.safetensors: the file is not"},
      {"an optimizer of another run", take("optimizer.safetensors"),
       "step-6 ... optimizer.safetensors: the file is not"},
      {"a whole checkpoint of another run", take(""), "step-6 ... is of another run than its folder"},
      {"run.json of another run",
       [](const Workplace& p) { p.write(checkpoints + "run.json", p.read("runs/other/checkpoints/run.json")); },
       "step-6 ... is of another run than its folder"},
      {"a folder renamed to another step",
       [](const Workplace& p) { fs::rename(p / (checkpoints + "step-4"), p / (checkpoints + "step-8")); },
       "step-8 ... this is the state of step 4: the folder was renamed"},
      {"metrics, a line of an earlier step at the end",
       [](const Workplace& p) {
         p.write("runs/lm/metrics.jsonl",
                 p.read("runs/lm/metrics.jsonl") + "{\"event\":\"valid\",\"step\":3,\"loss\":0.1,\"best\":true}\n");
       },
       "metrics.jsonl ... a line of step 3 follows those of step 6"},
      {"a state without a checksum", [](const Workplace& p) { take_checksum(p, checkpoints + "step-6/state.json"); },
       "state.json: the file is damaged"},
      {"a file", drop(checkpoints + "step-6/optimizer.safetensors"), "optimizer.safetensors ... no such file"},
      {"all",
       [&](const Workplace& p) {
         flip_bit(p, checkpoints + "step-6/model.safetensors");
         flip_bit(p, checkpoints + "step-4/model.safetensors");
       },
       "checkpoints/step-4 ... DAMAGED ... checkpoints/step-6 ... DAMAGED"},
      {"run.json", drop(checkpoints + "run.json"), "checkpoints/run.json ... is missing"},
      {"run.json, a bit", flip(checkpoints + "run.json"), "checkpoints/run.json ... damaged"},
      {"the last checkpoint", drop(checkpoints + "step-6"), "checkpoints/step-6 ... no such file"},
      {"checkpoints", drop(checkpoints), "checkpoints/run.json ... is missing"},
      {"metrics, a line",
       [](const Workplace& p) { p.write("runs/lm/metrics.jsonl", "x" + p.read("runs/lm/metrics.jsonl")); },
       "metrics.jsonl ... not what the checkpoint of step 6 recorded"},
      {"metrics, a digit",
       [](const Workplace& p) {
         std::string text = p.read("runs/lm/metrics.jsonl");
         text[text.find("\"loss\":") + 9] ^= 1;
         p.write("runs/lm/metrics.jsonl", text);
       },
       "metrics.jsonl ... not what the checkpoint of step 6 recorded"},
      {"metrics, absent", drop("runs/lm/metrics.jsonl"), "metrics.jsonl ... no such file"},
      {"configuration", [](const Workplace& p) { p.write("runs/lm/config.yaml", "garbage"); }, "config.yaml"},
      {"configuration, another model", [](const Workplace& p) { edit(p, "runs/lm/config.yaml", "gelu", "relu"); },
       "config.yaml ... not what step 6 was trained with"},
      {"tokenizer", [](const Workplace& p) { p.write("runs/lm/tokenizer.json", "{\"kind\": \"byte\"}"); },
       "tokenizer.json ... not what step 6 was trained with"},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const Workplace place;
    copy_files(trained.folder(), place.folder());
    row.damage(place);
    const Outcome outcome = verify(place, {"runs/lm", "runs/classifier"});
    CHECK(outcome.code == 1);
    check_contains(outcome.out, {"runs/lm: DAMAGED", "runs/classifier: whole"});
    check_contains(outcome.out, row.says);
  }
}

TEST_CASE("verify: a run whose checkpoints are all gone is damaged; one that was killed before its first save is not") {
  const TrainedPlace place;
  const fs::path folder = place / "runs/lm/checkpoints";
  const auto says = [&](int code, const Says& what) {
    const Outcome outcome = verify(place);
    CHECK(outcome.code == code);
    check_contains(outcome.out, what);
  };
  fs::rename(folder / "step-6", folder / ".replaced-step-6");  // as a kill leaves one that is saved again
  says(0, "runs/lm: whole ... checkpoints/step-6");
  succeed(place, "eval runs/lm");
  for (const char* const step : {"step-4", ".replaced-step-6"}) fs::remove_all(folder / step);
  says(1, "runs/lm: DAMAGED ... checkpoints/step-6 ... no such file");
  const RunMark mark = *read_mark(folder);
  fs::remove(folder / "run.json");
  says(1, "runs/lm: DAMAGED ... checkpoints/run.json ... is missing");
  place.write("runs/lm/checkpoints/run.json", to_json(RunMark{mark.id, -1}));  // as before the first save
  says(0, "runs/lm: whole ... checkpoints/run.json ... no step has been saved");
}

TEST_CASE_FIXTURE(Trained, "a checkpoint without a checksum is not resumed from, and what reads its model says so") {
  take_checksum(place, checkpoints + "step-6/model.safetensors");
  CHECK(contains(succeed(place, "eval runs/lm").err, "model.safetensors: the file has no checksum"));
  const Outcome resumed = succeed(place, "train --config lm.yaml");
  check_contains(resumed.err, {"by its checksum", "the run goes back to step 4"});
}

TEST_CASE("verify: a best checkpoint without the optimizer's state is whole; it is no checkpoint to go on from") {
  const SamplePlace place;
  succeed(place, "train --config lm.yaml --set train.lr=1e-30");  // the best is step 3
  REQUIRE_FALSE(fs::exists(place / (checkpoints + "step-3/optimizer.safetensors")));
  const Outcome whole = verify(place);
  CHECK(whole.code == 0);
  CHECK_MESSAGE(contains(whole.out, "checksums agree; without what resuming needs"), whole.out);
}

TEST_CASE_FIXTURE(Trained, "verify: left-over files are no part of a run, and what is no run is refused") {
  place.write(checkpoints + ".unfinished-step-9/state.json", "");
  place.write(checkpoints + "damaged-step-2/state.json", "");
  place.write("runs/lm/metrics.jsonl.damaged-1", "x");
  CHECK(verify(place).code == 0);
  CHECK(run(place, "verify text").code == 1);
  CHECK(run(place, "verify").code == 2);
}

TEST_CASE("verify: memory that is refused is not damage") {
#if defined(__SANITIZE_ADDRESS__)
  MESSAGE("skipped: AddressSanitizer reserves more addresses than the limit of this test");
#else
  const TrainedPlace place;
  fs::resize_file(place / "runs/lm/metrics.jsonl", uintmax_t{1} << 34);
  const Outcome outcome = run_shell(place, "ulimit -v 4000000; exec \"$capstan\" verify runs/lm runs/classifier");
  INFO(outcome.err);
  CHECK(outcome.code == 1);
  CHECK(contains(outcome.err, "out of memory"));
  CHECK_FALSE(contains(outcome.out, "DAMAGED"));
  CHECK(contains(outcome.out, "runs/classifier: whole"));
#endif
}

}  // namespace
}  // namespace capstan::testing
