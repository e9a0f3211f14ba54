// Checkpoints and records that were damaged: what is used instead, what is kept, what is said.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/io/file.hpp"
#include "train/checkpointed_runs.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/checkpoints/open_model.hpp"

using namespace capstan;
using namespace capstan::testing;
namespace {

struct Damage {
  const char* name;
  std::function<void(const fs::path&)> inflict;  // on the folder of a checkpoint
  const char* file;
};

/// Replaces a file of a checkpoint by that of another run of the same configuration, data and step.
void take_from_other(const fs::path& checkpoint, const char* file) {
  const TemporaryFolder folder;
  Setup other(folder / "run");
  other.params.values()[0] += 1;
  make_two_checkpoints(other);
  fs::copy_file(folder / "run/checkpoints" / checkpoint.filename() / file, checkpoint / file,
                fs::copy_options::overwrite_existing);
}

const std::vector<Damage>& damages() {
  static const std::vector<Damage> list = {
      Damage{"truncated", [](const fs::path& f) { fs::resize_file(f / model_name, fs::file_size(f / model_name) - 3); },
             model_name},
      Damage{"bit flip", [](const fs::path& f) { flip_bit(f / model_name, fs::file_size(f / model_name) - 9); },
             model_name},
      Damage{"bit flip in the moments",
             [](const fs::path& f) { flip_bit(f / optimizer_name, fs::file_size(f / optimizer_name) / 2); },
             optimizer_name},
      Damage{"missing", [](const fs::path& f) { fs::remove(f / optimizer_name); }, optimizer_name},
      Damage{"state cut", [](const fs::path& f) { fs::resize_file(f / "state.json", 100); }, "state.json"},
      Damage{"state flipped",
             [](const fs::path& f) { flip_bit(f / "state.json", read_text(f / "state.json").find("\"step\": 8") + 8); },
             "state.json"},
      Damage{"empty", [](const fs::path& f) { fs::resize_file(f / "state.json", 0); }, "state.json"},
      Damage{"folder gone", [](const fs::path& f) { fs::remove_all(f); }, "step-8"},
      Damage{"weights of another run", [](const fs::path& f) { take_from_other(f, model_name); }, model_name},
      Damage{"moments of another run", [](const fs::path& f) { take_from_other(f, optimizer_name); }, optimizer_name},
      Damage{"a whole checkpoint of another run",
             [](const fs::path& f) {
               for (const char* const name : {model_name, optimizer_name, state_name}) take_from_other(f, name);
             },
             "is of another run"},
      Damage{"a folder that was renamed",
             [](const fs::path& f) {
               fs::remove_all(f);
               fs::rename(f.parent_path() / "step-6", f);
               fs::copy(f, f.parent_path() / "step-6", fs::copy_options::recursive);
             },
             "the folder was renamed"},
  };
  return list;
}

}  // namespace

TEST_CASE("a damaged last checkpoint: the run goes back to the newest whole one and ends with the same bits") {
  const TemporaryFolder elsewhere;
  Setup unbroken(elsewhere / "unbroken");
  make_two_checkpoints(unbroken);
  for (const Damage& damage : damages()) {
    CAPTURE(damage.name);
    NewRun setup;
    make_two_checkpoints(setup);
    const fs::path checkpoints = setup / "run/checkpoints";
    damage.inflict(checkpoints / "step-8");
    const bool gone = !fs::exists(checkpoints / "step-8");
    const std::string kept = gone ? "" : read_text(checkpoints / "step-8/model.safetensors");
    {
      Setup named(setup / "run");
      named.inputs.resume_from = checkpoints / "step-8";
      const std::string message = message_of([&] { train(named.inputs, config_of(8)); });
      CHECK_MESSAGE(
          (contains(message, damage.file) && contains(message, "complete checkpoints:") && contains(message, "step-4")),
          message);
    }
    CHECK(train(setup.inputs, config_of(8)).state.step == 8);
    CHECK(setup.weights() == unbroken.weights());
    CHECK(tensors_of(checkpoints / "last") == tensors_of(elsewhere / "unbroken/checkpoints/last"));
    CHECK(checkpoint_name(checkpoints / "best") == checkpoint_name(elsewhere / "unbroken/checkpoints/best"));
    CHECK(comparable_metrics(setup / "run") == comparable_metrics(elsewhere / "unbroken"));
    const std::string log = read_text(setup / "run/train.log");
    check_contains(log, {"warning: ", damage.file, "goes back to step 6"});
    CHECK(fs::exists(checkpoints / "damaged-step-8") == !gone);
    if (!gone) CHECK(read_text(checkpoints / "damaged-step-8/model.safetensors") == kept);
  }
}

TEST_CASE_FIXTURE(OneRun, "files of two checkpoints that were mixed are damage") {
  make_two_checkpoints(setup);
  const fs::path checkpoints = setup / "run/checkpoints";
  fs::copy_file(checkpoints / "step-4/optimizer.safetensors", checkpoints / "step-8/optimizer.safetensors",
                fs::copy_options::overwrite_existing);
  train(setup.inputs, config_of(8));
  CHECK(contains(read_text(setup / "run/train.log"),
                 "optimizer.safetensors: the file is not the one that was saved with state.json"));
}

TEST_CASE_FIXTURE(OneRun, "several damaged checkpoints, earlier damage, no whole one") {
  TrainConfig config = config_of(12);
  config.keep_last = 3;
  train(setup.inputs, config);
  const std::vector<real> weights = setup.weights();
  const fs::path checkpoints = setup / "run/checkpoints";
  const auto damage = [&](int64_t step) {
    flip_bit(Checkpoints(checkpoints).of_step(step) / "optimizer.safetensors", 300);
  };
  CHECK(Checkpoints(checkpoints).steps() == std::vector<int64_t>{8, 9, 12});
  for (int round = 0; round < 2; ++round) {
    damage(12);
    damage(9);
    train(setup.inputs, config);
    CHECK(setup.weights() == weights);
  }
  for (const char* const name : {"damaged-step-12", "damaged-step-12-2", "damaged-step-9", "damaged-step-9-2"})
    CHECK_MESSAGE(fs::exists(checkpoints / name), name);
  for (const int64_t step : Checkpoints(checkpoints).steps()) damage(step);
  const std::string whole_weights = message_of([&] { train(setup.inputs, config); });
  check_contains(whole_weights, {"step-12/optimizer.safetensors", "complete checkpoints", "train.init_from"});
  for (const int64_t step : Checkpoints(checkpoints).steps())
    flip_bit(Checkpoints(checkpoints).of_step(step) / "model.safetensors", 290);
  const auto before = Checkpoints(checkpoints).steps();
  const std::string message = message_of([&] { train(setup.inputs, config); });
  check_contains(message,
                 {"step-12/model.safetensors", "no other checkpoint is complete", "to train anew", "checkpoints"});
  CHECK(Checkpoints(checkpoints).steps() == before);
}

TEST_CASE("the only checkpoint is damaged: nothing is touched, and the message says how to begin anew") {
  NewRun setup;
  TrainConfig config = config_of(2);
  config.save_every = 0;  // or there would be one of step 0
  train(setup.inputs, config);
  const fs::path file = setup / "run/checkpoints/step-2/state.json";
  fs::resize_file(file, 50);
  const std::string message = message_of([&] { train(setup.inputs, config_of(4)); });
  check_contains(message, {file.string(), "to train anew from the first step, remove "});
  CHECK(fs::exists(file));
  fs::remove_all(setup / "run/checkpoints");
  CHECK(train(setup.inputs, config_of(4)).state.step == 4);
}

TEST_CASE_FIXTURE(OneRun, "a damaged checkpoint of another configuration is left alone") {
  make_two_checkpoints(setup);
  flip_bit(setup / "run/checkpoints/step-8/model.safetensors", 290);
  setup.inputs.seed = 2;
  CHECK(contains(message_of([&] { train(setup.inputs, config_of(8)); }), "another seed"));
  CHECK(fs::exists(setup / "run/checkpoints/step-8"));
  CHECK(checkpoint_name(setup / "run/checkpoints/last") == "step-8");
}

TEST_CASE("by default there is a second checkpoint besides the newest, also when that is the best") {
  const TemporaryFolder folder;
  for (const bool improves : {true, false}) {
    Setup setup(folder / (improves ? "better" : "worse"));
    TrainConfig config = config_of(12);
    config.valid_every = 2;
    config.save_every = 1;
    if (!improves) config.lr = 1e-30;
    train(setup.inputs, config);
    const fs::path checkpoints = setup.inputs.folder / "checkpoints";
    CHECK(Checkpoints(checkpoints).steps() ==
          (improves ? std::vector<int64_t>{11, 12} : std::vector<int64_t>{2, 11, 12}));
    CHECK((checkpoint_name(checkpoints / "best") == "step-12") == improves);
  }
}

TEST_CASE_FIXTURE(OneRun, "a damaged or lost best checkpoint is an error that names the others, never another model") {
  make_two_checkpoints(setup);
  const fs::path run = setup / "run", checkpoints = run / "checkpoints";
  const std::string best = checkpoint_name(checkpoints / "best");
  const std::string other = best == "step-8" ? "step-4" : "step-8";
  flip_bit(checkpoints / best / "model.safetensors", 290);
  const auto message = [&] { return message_of([&] { open_model(run); }); };
  check_contains(message(),
                 {best + "/model.safetensors", "checksum", "complete checkpoints: ", (checkpoints / other).string()});
  fs::remove_all(checkpoints / best);
  check_contains(message(), {best + "/state.json", "no such file", (checkpoints / other).string()});
  CHECK(open_model(checkpoints / other).path() == (checkpoints / other / "model.safetensors").string());
}

TEST_CASE("a damaged metrics.jsonl is copied, and keeps its readable lines up to the checkpoint's step") {
  TrainConfig config = config_of(8);
  config.log_every = 1;
  config.schedule.shape = ScheduleShape::constant;
  NewRun setup;
  train(setup.inputs, config);
  const fs::path metrics = setup / "run/metrics.jsonl", log = setup / "run/train.log";
  const auto lines = [&] {
    const std::string text = read_text(metrics);
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto before = lines();
  flip_bit(metrics, 0);
  const std::string damaged = read_text(metrics);
  config.steps = 9;
  train(setup.inputs, config);
  CHECK(lines() == before - 1 + 2);  // a step and its evaluation
  CHECK(read_text(metrics.string() + ".damaged-1") == damaged);
  CHECK(contains(read_text(log), "metrics.jsonl is damaged (1 unreadable lines)"));
  // A changed digit is still JSON: the checkpoint knows better.
  std::string text = read_text(metrics);
  text[text.find("\"loss\":") + 9] ^= 1;
  write_text(metrics, text);
  config.steps = 10;
  train(setup.inputs, config);
  CHECK(read_text(metrics.string() + ".damaged-2") == text);
  CHECK(read_text(metrics.string() + ".damaged-1") == damaged);
  // A half-written line at the end is what a kill leaves, and no damage.
  write_text(metrics, read_text(metrics) + "{\"event\":\"tr");
  config.steps = 11;
  train(setup.inputs, config);
  CHECK_FALSE(fs::exists(metrics.string() + ".damaged-3"));
  CHECK_FALSE(contains(read_text(metrics), "\"tr{"));
  fs::remove(metrics);
  config.steps = 12;
  train(setup.inputs, config);
  CHECK(contains(read_text(log), "metrics.jsonl is missing: its lines up to step 11 are lost"));
  CHECK(lines() == 2);
}
