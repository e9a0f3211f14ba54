// capstan verify --replay: a piece of a run computed again, and what it says of a run that was changed afterwards.
#include <doctest/doctest.h>

#include <cmath>

#include "core/io/json.hpp"
#include "core/io/safetensors.hpp"
#include "tests/cli/support/samples.hpp"
#include "tests/support/forged_checkpoint.hpp"

namespace capstan::testing {
namespace {

/// The same file with the last bit of one element of its first tensor changed, and a right checksum.
void change_tensor(const fs::path& path) {
  bool changed = false;
  change_tensors(path, [&](const std::string&, std::vector<float>& values) {
    if (!changed) values[1] = std::nextafter(values[1], INFINITY);
    changed = true;
  });
}

TEST_CASE("replay: the bits of a run on other threads, from any checkpoint or the begin; what was changed is named") {
  const TrainedPlace place;
  succeed(place,
          "train --config runs/lm/config.yaml --set name=piece train.steps=12 train.epochs=0 train.save_every=4 "
          "train.keep_last=9 train.valid_every=3 train.log_every=5");
  const fs::path folder = place.folder() / "runs/piece";
  for (const Words& steps : {Words{}, {"--steps", "4..8"}, {"--steps", "0..12", "--set", "threads=3"}}) {
    const std::string out = succeed(place, Words("verify --replay runs/piece") + steps).out;
    check_contains(out, {": the same\n", "tensors of model.safetensors", "tensors of optimizer.safetensors"});
  }
  const auto differs = [&](const std::string& what, const Words& more = {}) {
    const Outcome ended = run(place, Words("verify --replay runs/piece --steps 8..12") + more);
    CAPTURE(ended.out);
    CAPTURE(ended.err);
    CHECK(ended.code == 1);
    CHECK(contains(ended.out + ended.err, what));
  };
  const std::string model = place.read("runs/piece/checkpoints/step-12/model.safetensors"),
                    optimizer = place.read("runs/piece/checkpoints/step-12/optimizer.safetensors"),
                    metrics = place.read("runs/piece/metrics.jsonl"), config = place.read("runs/piece/config.yaml"),
                    state_file = "runs/piece/checkpoints/step-12/state.json", state = place.read(state_file);
  change_tensor(folder / "checkpoints/step-12/model.safetensors");
  differs("model.safetensors: 1 of");
  place.write("runs/piece/checkpoints/step-12/model.safetensors", model);
  change_tensor(folder / "checkpoints/step-12/optimizer.safetensors");
  differs("optimizer.safetensors: 1 of");
  place.write("runs/piece/checkpoints/step-12/optimizer.safetensors", optimizer);
  place.write(state_file, state);
  forge_state(folder / "checkpoints/step-12", {{"tokens", 7}});
  differs("state.json: tokens: saved 7, computed ");
  place.write(state_file, state);
  std::string other = metrics;
  other.replace(other.rfind("\"loss\":") + 7, 1, "9");
  place.write("runs/piece/metrics.jsonl", other);
  differs("metrics.jsonl: ");
  place.write("runs/piece/metrics.jsonl", metrics);
  differs("note:      config.yaml: train.lr was ", {"--set", "train.lr=0.01"});
  check_refused(place, "a step without a checkpoint", "verify --replay runs/piece --steps 5..12",
                "--steps ... step 5 ... 4, 6, 8, 9, 12 ... train.keep_optimizer", 2);
  check_refused(place, "no range", "verify --replay runs/piece --steps 5", "FROM..TO", 2);
}

TEST_CASE("replay: a line of metrics.jsonl that is inserted, repeated, absent, moved or changed is named") {
  const TrainedPlace place;
  const std::string name = "runs/lm/metrics.jsonl";
  const Words lines = lines_of(place.read(name));
  REQUIRE(lines.size() == 8);  // steps 1, 2, 3, the validation of 3, 4, 5, 6 and its validation
  const auto differs = [&](const Words& changed, size_t line) {
    place.write(name, text_of(changed));
    const Outcome ended = run(place, "verify --replay runs/lm --steps 0..6");
    CHECK(ended.code == 1);
    check_contains(ended.out, {fmt::format("different: metrics.jsonl: line {} of these steps: saved ", line)});
  };
  Words changed = lines;
  changed.insert(changed.begin() + 5, lines[3]);
  differs(changed, 6);
  changed = lines;
  std::swap(changed[1], changed[2]);
  differs(changed, 2);
  changed = lines;
  changed.erase(changed.begin() + 1);
  differs(changed, 2);
  changed = lines;
  changed[2].insert(1, "\"more\":1,");
  differs(changed, 3);
  // What a kill has cut at the end is no part of the run.
  place.write(name, text_of(lines) + "{\"event\":\"tr");
  CHECK(contains(run(place, "verify --replay runs/lm --steps 0..6").out, ": the same\n"));
}

TEST_CASE_FIXTURE(Trained, "replay checks the files, too: a tokenizer, a checkpoint that it does not begin at") {
  const auto damaged = [&](const Words& more, const std::string& what) {
    const Outcome ended = run(place, Words("verify --replay -q runs/lm") + more);
    CHECK(ended.code == 1);
    check_contains(ended.out, {"DIFFERENT", what + ": damaged: ", "tensors of model.safetensors"});
  };
  place.write("runs/lm/tokenizer.json", "{\"kind\": \"byte\"}");
  damaged({}, "tokenizer.json");
  std::string state = place.read("runs/lm/checkpoints/step-4/state.json");
  state[state.find("\"seed\":") + 8] ^= 1;
  place.write("runs/lm/checkpoints/step-4/state.json", state);
  damaged({}, "checkpoints/step-4");
  damaged({"--steps", "0..6"}, "checkpoints/step-4");
}

TEST_CASE(
    "replay: what stands in its way is named: the folder for temporary files, other data, a length without steps") {
  const TrainedPlace place;
  const auto refused = [&](const std::string& command, const Words& parts) {
    const Outcome outcome = run_shell(place, command);
    CHECK(outcome.code != 0);
    CHECK(indecency(outcome) == "");
    check_contains(outcome.err, parts);
  };
  refused("TMPDIR=/nonexist \"$capstan\" verify --replay -q runs/lm",
          {"/nonexist: TMPDIR of the environment names this", "there is no such folder"});
  succeed(place, "train --config lm.yaml --set name=thirds train.save_every=3");
  refused("\"$capstan\" verify --replay -q runs/thirds --set train.steps=3",
          {"runs/thirds: ", "at its end at step 3", "no step up to 6", "train.steps"});
  refused("\"$capstan\" verify --replay -q runs/lm --set seed=3",
          {"another seed", "use that one: what another run computes"});
  place.write("text/a.txt", place.read("text/a.txt") + "the rope\n");
  const Words says{"runs/lm holds a run with other data", "the content of the files has changed (data.train: text)",
                   "continue with what it was started with: what another run computes cannot be compared"};
  refused("\"$capstan\" verify --replay -q runs/lm", says);
  CHECK_FALSE(contains(run(place, "verify --replay -q runs/lm").err, "name=NEW"));
  CHECK(contains(run(place, "verify --replay -q runs/lm --steps 0..6").out,
                 "data: not those that the run was trained with"));
}

TEST_CASE("replay validates where the run did: at its time limit, and at an end from which it went on") {
  const TrainedPlace place;
  succeed(
      place,
      "train --config runs/lm/config.yaml --set name=timed train.steps=100000 train.epochs=0 train.max_minutes=0.01 "
      "train.valid_every=100000");
  check_contains(succeed(place, "verify --replay runs/timed").out, {": the same\n", "fields of state.json"});
  // One that went on after its end has a validation there that no key asks for.
  for (const std::string steps : {"7", "12"})
    succeed(place,
            "train --config runs/lm/config.yaml --set name=longer train.epochs=0 train.schedule.shape=constant "
            "train.valid_every=5 train.log_every=3 train.keep_optimizer=true train.keep_last=9 train.steps=" +
                steps);
  for (const std::string steps : {"0..12", "5..10"})
    check_contains(succeed(place, "verify --replay runs/longer --steps " + steps).out,
                   {": the same\n", "fields of state.json"});
}

TEST_CASE_FIXTURE(Trained, "replay: settings without effect on what is computed are no difference") {
  const Outcome same =
      succeed(place, "verify --replay runs/lm --steps 0..6 --set train.keep_last=5 train.save_every=1");
  check_contains(same.out, {": the same\n", "note:      config.yaml: train.keep_last was 2, is now 5"});
}

TEST_CASE_FIXTURE(Samples, "replay of a linear classifier solves for it again") {
  place.write("linear.yaml",
              "name: linear\ndata: {type: labelled, train: [train.tsv]}\nmodel: {type: linear-classifier, words: [1, "
              "2], buckets: 4096}\ntrain: {steps: 1}\n");
  succeed(place, "train --config linear.yaml");
  CHECK(contains(succeed(place, "verify --replay runs/linear --set threads=3").out, "runs/linear, the same\n"));
  check_refused(place, "steps", "verify --replay runs/linear --steps 0..1", "--steps ... linear classifier", 2);
  const std::string metrics = place.read("runs/linear/metrics.jsonl");
  check_contains(succeed(place, "verify --replay runs/linear").out, {"the same:  2 lines of metrics.jsonl"});
  const auto differs = [&](const std::string& what) {
    const Outcome ended = run(place, "verify --replay runs/linear");
    CHECK(ended.code == 1);
    check_contains(ended.out, {"different: " + what});
  };
  const size_t loss = metrics.find("\"loss\":") + 9;
  std::string changed = metrics;
  changed[loss] ^= 1;  // another decimal digit
  place.write("runs/linear/metrics.jsonl", changed);
  differs("metrics.jsonl: line 1 of these steps: saved");
  place.write("runs/linear/metrics.jsonl", metrics);
  place.write("train.tsv", place.read("train.tsv") + "good\tone more line\n");
  const Outcome other = run(place, "verify --replay runs/linear");
  CHECK(other.code == 1);
  CHECK(contains(other.out, "different: data: not those that the run was trained with (data.train: train.tsv)"));
}

}  // namespace
}  // namespace capstan::testing
