#include <doctest/doctest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/machine/parallel.hpp"
#include "train/runs/checkpoint.hpp"
#include "train/support.hpp"

using namespace capstan;
using namespace capstan::testing;
namespace fs = std::filesystem;

namespace {

TrainConfig config_of(int64_t steps) {
  TrainConfig config = quiet_config();
  config.steps = steps;
  config.ema_decay = 0.9;
  config.accumulate = 2;  // 4 steps per epoch of 7 batches
  config.schedule.warmup_steps = 3;
  return config;
}

/// Lines of metrics.jsonl without what differs from run to run.
std::string comparable_metrics(const fs::path& folder) {
  std::ifstream file(folder / "metrics.jsonl");
  std::string all;
  for (std::string line; std::getline(file, line);) {
    for (const char* key : {"\"seconds\":", "\"tokens_per_second\":", "\"rss_bytes\":", "\"peak_rss_bytes\":"})
      if (const size_t at = line.find(key); at != std::string::npos) line.erase(at, line.find_first_of(",}", at) - at);
    all += line + "\n";
  }
  return all;
}

/// All that a checkpoint's tensors hold.
std::string tensors_of(const fs::path& checkpoint) {
  return read_text(checkpoint / "model.safetensors") + read_text(checkpoint / "optimizer.safetensors");
}

void flip_bit(const fs::path& path, size_t byte) {
  std::string content = read_text(path);
  content.at(byte) = static_cast<char>(content[byte] ^ 4);
  write_text(path, content);
}

/// A run of 8 steps with checkpoints at 4 and 8, both kept.
void make_two_checkpoints(Setup& setup) {
  TrainConfig config = config_of(8);
  config.keep_last = 5;
  train(setup.inputs, config);
}

}  // namespace

TEST_CASE("a run broken anywhere ends with the weights, files and metrics of an unbroken one") {
  const TemporaryFolder folder;
  bool fresh = false;
  SUBCASE("") {}
  SUBCASE("a table starts again with each epoch") { fresh = true; }
  Setup unbroken(folder / "unbroken", 11, fresh);
  train(unbroken.inputs, config_of(12));
  const std::string metrics = comparable_metrics(folder / "unbroken");
  CHECK(std::count(metrics.begin(), metrics.end(), '\n') == 7 + 4);
  // Steps 4 and 8 end an epoch, 12 is the last one.
  for (int64_t stop = 0; stop < 12; ++stop) {
    CAPTURE(stop);
    const fs::path run = folder / ("broken-" + std::to_string(stop));
    {
      Setup first(run, 11, fresh);
      first.task.before_loss = [&](const Context& context) {
        if (context.training && context.step == static_cast<uint64_t>(stop)) send_signal(SIGTERM);
      };
      REQUIRE(train(first.inputs, config_of(12)).interrupted);
    }
    Setup second(run, 11, fresh);
    second.params.values()[0] = 99;  // must not matter
    const TrainResult result = train(second.inputs, config_of(12));
    CHECK_FALSE(result.interrupted);
    CHECK(second.weights() == unbroken.weights());
    CHECK(tensors_of(run / "checkpoints/last") == tensors_of(folder / "unbroken/checkpoints/last"));
    CHECK(fs::read_symlink(run / "checkpoints/best") == fs::read_symlink(folder / "unbroken/checkpoints/best"));
    CHECK(comparable_metrics(run) == metrics);
  }
}

TEST_CASE("a signal during evaluation: the evaluation is made up for, patience counts as before") {
  const TemporaryFolder folder;
  TrainConfig config = config_of(30);
  config.valid_every = 1;
  config.patience = 4;
  config.min_delta = 1e9;
  Setup setup(folder / "run");
  for (int session = 0; session < 4; ++session) {
    bool done = false;
    setup.task.before_loss = [&](const Context& context) {
      if (!context.training && !std::exchange(done, session > 0 && !done)) send_signal(SIGUSR1);
    };
    if (session == 3) setup.task.before_loss = nullptr;
    const TrainResult result = train(setup.inputs, config);
    CHECK(result.interrupted == (session < 3));
    if (session == 3) {
      CHECK(result.state.stalled == 4);
      CHECK(result.state.step == 5);
    }
  }
}

TEST_CASE("a finished run goes on when its limit is raised") {
  const TemporaryFolder folder;
  Setup setup(folder / "run");
  TrainConfig config = config_of(6);
  config.schedule.shape = ScheduleShape::constant;
  train(setup.inputs, config);
  config.steps = 12;
  config.log_every = 1;
  CHECK(train(setup.inputs, config).state.step == 12);
  CHECK(contains(read_text(folder / "run/train.log"), "train.steps was 6, is now 12"));
  Setup unbroken(folder / "unbroken");
  train(unbroken.inputs, config);
  CHECK(setup.weights() == unbroken.weights());
}

TEST_CASE("what must not change within a run is named") {
  const TemporaryFolder folder;
  Setup setup(folder / "run");
  train(setup.inputs, config_of(4));
  struct Case {
    std::function<void(TrainInputs&, TrainConfig&)> change;
    std::vector<const char*> expected;
  };
  for (const Case& c : {
           Case{[](TrainInputs&in, TrainConfig&) { in.identity["model"] = "lookup\nwidth: 12"; },
                {"another model", "was \"width: 11\", is now \"width: 12\"", "another run folder"}},
           Case{[](TrainInputs&in, TrainConfig&) { in.identity["data"] = "other"; },
                {"another data", "drawn", "other"}},
           Case{[](TrainInputs&in, TrainConfig&) { in.identity.erase("data"); }, {"another data", "not given"}},
           Case{[](TrainInputs&in, TrainConfig&) { in.identity["tokenizer"] = "x"; },
                {"another tokenizer", "it had none"}},
           Case{[](TrainInputs&in, TrainConfig&) { in.seed = 2; }, {"another seed: was 1, is now 2"}},
           Case{[](TrainInputs&, TrainConfig&config) { config.batch_size = 7; },
                {"another train.batch_size: was 32, is now 7"}},
           Case{[](TrainInputs&, TrainConfig&config) { config.optimizer = LionConfig{}; },
                {"train.optimizer: was adamw, is now lion"}},
           Case{[](TrainInputs&, TrainConfig&config) { config.ema_decay = 0; },
                {"train.ema_decay: was on, is now off"}},
       }) {
    TrainInputs inputs = setup.inputs;
    TrainConfig config = config_of(8);
    c.change(inputs, config);
    const std::string message = message_of([&] { train(inputs, config); });
    for (const char* part : c.expected) CHECK_MESSAGE(contains(message, part), message);
  }
  Setup wider(folder / "run", 12);  // the identity says the same, the tensors do not
  CHECK(contains(message_of([&] { train(wider.inputs, config_of(8)); }),
                 "tensor weight is (11), this configuration needs (12)"));
}

struct Damage {
  const char* name;
  std::function<void(const fs::path&)> inflict;  // on the folder of a checkpoint
  const char* file;
};

const std::vector<Damage>& damages() {
  static const std::vector<Damage> list = {
      Damage{"truncated",
             [](const fs::path& f) {
               fs::resize_file(f / "model.safetensors", fs::file_size(f / "model.safetensors") - 3);
             },
             "model.safetensors"},
      Damage{"bit flip",
             [](const fs::path& f) { flip_bit(f / "model.safetensors", fs::file_size(f / "model.safetensors") - 9); },
             "model.safetensors"},
      Damage{"bit flip in the moments",
             [](const fs::path& f) {
               flip_bit(f / "optimizer.safetensors", fs::file_size(f / "optimizer.safetensors") / 2);
             },
             "optimizer.safetensors"},
      Damage{"missing", [](const fs::path& f) { fs::remove(f / "optimizer.safetensors"); }, "optimizer.safetensors"},
      Damage{"state cut", [](const fs::path& f) { fs::resize_file(f / "state.json", 100); }, "state.json"},
      Damage{"state flipped",
             [](const fs::path& f) { flip_bit(f / "state.json", read_text(f / "state.json").find("\"step\": 8") + 8); },
             "state.json"},
      Damage{"empty", [](const fs::path& f) { fs::resize_file(f / "state.json", 0); }, "state.json"},
      Damage{"folder gone", [](const fs::path& f) { fs::remove_all(f); }, "step-8"},
  };
  return list;
}

TEST_CASE("a damaged last checkpoint: the run goes back to the newest whole one and ends with the same bits") {
  const TemporaryFolder elsewhere;
  Setup unbroken(elsewhere / "unbroken");
  make_two_checkpoints(unbroken);
  for (const Damage& damage : damages()) {
    CAPTURE(damage.name);
    const TemporaryFolder folder;
    Setup setup(folder / "run");
    make_two_checkpoints(setup);
    const fs::path checkpoints = folder / "run/checkpoints";
    damage.inflict(checkpoints / "step-8");
    const bool gone = !fs::exists(checkpoints / "step-8");
    const std::string kept = gone ? "" : read_text(checkpoints / "step-8/model.safetensors");
    {
      Setup named(folder / "run");
      named.inputs.resume_from = checkpoints / "step-8";
      const std::string message = message_of([&] { train(named.inputs, config_of(8)); });
      CHECK_MESSAGE(
          (contains(message, damage.file) && contains(message, "complete checkpoints:") && contains(message, "step-4")),
          message);
    }
    CHECK(train(setup.inputs, config_of(8)).state.step == 8);
    CHECK(setup.weights() == unbroken.weights());
    CHECK(tensors_of(checkpoints / "last") == tensors_of(elsewhere / "unbroken/checkpoints/last"));
    CHECK(fs::read_symlink(checkpoints / "best") == fs::read_symlink(elsewhere / "unbroken/checkpoints/best"));
    CHECK(comparable_metrics(folder / "run") == comparable_metrics(elsewhere / "unbroken"));
    const std::string log = read_text(folder / "run/train.log");
    CHECK_MESSAGE((contains(log, "warning: ") && contains(log, damage.file) && contains(log, "goes back to step 6")),
                  log);
    CHECK(fs::exists(checkpoints / "damaged-step-8") == !gone);
    if (!gone) CHECK(read_text(checkpoints / "damaged-step-8/model.safetensors") == kept);
  }
}

TEST_CASE("files of two checkpoints that were mixed are damage") {
  const TemporaryFolder folder;
  Setup setup(folder / "run");
  make_two_checkpoints(setup);
  const fs::path checkpoints = folder / "run/checkpoints";
  fs::copy_file(checkpoints / "step-4/optimizer.safetensors", checkpoints / "step-8/optimizer.safetensors",
                fs::copy_options::overwrite_existing);
  train(setup.inputs, config_of(8));
  CHECK(contains(read_text(folder / "run/train.log"),
                 "optimizer.safetensors: the file is of step 4, state.json is of step 8"));
}

TEST_CASE("several damaged checkpoints, earlier damage, no whole one") {
  const TemporaryFolder folder;
  Setup setup(folder / "run");
  TrainConfig config = config_of(12);
  config.keep_last = 3;
  train(setup.inputs, config);
  const std::vector<real> weights = setup.weights();
  const fs::path checkpoints = folder / "run/checkpoints";
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
  const auto before = Checkpoints(checkpoints).steps();
  const std::string message = message_of([&] { train(setup.inputs, config); });
  for (const char* const part :
       {"step-12/optimizer.safetensors", "no other checkpoint is complete", "to train anew", "checkpoints"})
    CHECK_MESSAGE(contains(message, part), message);
  CHECK(Checkpoints(checkpoints).steps() == before);
}

TEST_CASE("the only checkpoint is damaged: nothing is touched, and the message says how to begin anew") {
  const TemporaryFolder folder;
  Setup setup(folder / "run");
  TrainConfig config = config_of(2);
  config.save_every = 0;  // or there would be one of step 0
  train(setup.inputs, config);
  const fs::path file = folder / "run/checkpoints/step-2/state.json";
  fs::resize_file(file, 50);
  const std::string message = message_of([&] { train(setup.inputs, config_of(4)); });
  CHECK_MESSAGE((contains(message, file.string()) && contains(message, "to train anew from the first step, remove ")),
                message);
  CHECK(fs::exists(file));
  fs::remove_all(folder / "run/checkpoints");
  CHECK(train(setup.inputs, config_of(4)).state.step == 4);
}

TEST_CASE("a damaged checkpoint of another configuration is left alone") {
  const TemporaryFolder folder;
  Setup setup(folder / "run");
  make_two_checkpoints(setup);
  flip_bit(folder / "run/checkpoints/step-8/model.safetensors", 290);
  setup.inputs.seed = 2;
  CHECK(contains(message_of([&] { train(setup.inputs, config_of(8)); }), "another seed"));
  CHECK(fs::exists(folder / "run/checkpoints/step-8"));
  CHECK(fs::read_symlink(folder / "run/checkpoints/last") == "step-8");
}

TEST_CASE("by default there is a second checkpoint besides the newest, also when that is the best") {
  const TemporaryFolder folder;
  for (const bool improves : {true, false}) {
    Setup setup(folder / (improves ? "better" : "worse"));
    TrainConfig config = config_of(12);
    config.valid_every = 2;
    config.save_every = 1;
    config.min_delta = improves ? -1e9 : 1e9;
    train(setup.inputs, config);
    const fs::path checkpoints = setup.inputs.folder / "checkpoints";
    CHECK(Checkpoints(checkpoints).steps() ==
          (improves ? std::vector<int64_t>{11, 12} : std::vector<int64_t>{2, 11, 12}));
    CHECK((fs::read_symlink(checkpoints / "best") == "step-12") == improves);
  }
}

TEST_CASE("a damaged or lost best checkpoint is an error that names the others, never another model") {
  const TemporaryFolder folder;
  Setup setup(folder / "run");
  make_two_checkpoints(setup);
  const fs::path run = folder / "run", checkpoints = run / "checkpoints";
  const std::string best = fs::read_symlink(checkpoints / "best").string();
  const std::string other = best == "step-8" ? "step-4" : "step-8";
  flip_bit(checkpoints / best / "model.safetensors", 290);
  const auto message = [&] { return message_of([&] { find_model_file(run); }); };
  CHECK_MESSAGE((contains(message(), "best/model.safetensors") && contains(message(), "checksum") &&
                 contains(message(), "complete checkpoints: ") && contains(message(), (checkpoints / other).string())),
                message());
  fs::remove_all(checkpoints / best);
  CHECK_MESSAGE((contains(message(), "best/model.safetensors") && contains(message(), "No such file") &&
                 contains(message(), (checkpoints / other).string())),
                message());
  fs::remove(checkpoints / "best");
  fs::remove(checkpoints / "last");
  fs::create_directory_symlink(other, checkpoints / "last");
  CHECK_MESSAGE(contains(message(), "best/model.safetensors"), message());
  CHECK(find_model_file(checkpoints / other) == (checkpoints / other / "model.safetensors").string());
}

TEST_CASE("an identity that an earlier version saved is brought up to date before it is compared") {
  const TemporaryFolder folder;
  Setup setup(folder / "run");
  setup.inputs.identity = {{"model", "width: 4"}};
  TrainConfig config = config_of(4);
  train(setup.inputs, config);
  config.steps = 6;
  setup.inputs.identity = {{"model", "width: 4, depth: 1"}};
  CHECK(contains(message_of([&] { train(setup.inputs, config); }), "another model"));
  setup.inputs.renewed = [](const std::string& name, const std::string& saved) {
    return name == "model" ? saved + ", depth: 1" : saved;
  };
  CHECK(train(setup.inputs, config).state.step == 6);
  setup.inputs.renewed = {};
  config.steps = 8;
  CHECK(train(setup.inputs, config).state.step == 8);
}

TEST_CASE("a run in a folder whose name is not UTF-8 saves and resumes") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "Daten_\xfc");
  const fs::path before = fs::current_path();
  fs::current_path(folder / "Daten_\xfc");
  Setup setup("run");
  TrainConfig config = config_of(4);
  CHECK(message_of([&] { train(setup.inputs, config); }) == "");
  config.steps = 6;
  CHECK(message_of([&] { CHECK(train(setup.inputs, config).state.step == 6); }) == "");
  fs::current_path(before);
}

TEST_CASE("a run that goes on from an earlier step keeps a copy of the later lines, and is no damage") {
  const TemporaryFolder folder;
  TrainConfig config = config_of(8);
  config.log_every = 1;
  config.keep_last = 5;
  Setup setup(folder / "run");
  train(setup.inputs, config);
  const fs::path metrics = folder / "run/metrics.jsonl", log = folder / "run/train.log";
  const std::string all = read_text(metrics);
  config.steps = 5;
  setup.inputs.resume_from = folder / "run/checkpoints/step-4";
  train(setup.inputs, config);
  CHECK(read_text(metrics.string() + ".replaced-1") == all);
  CHECK(contains(read_text(log), "metrics.jsonl goes on from step 4: its later lines are kept in"));
}

TEST_CASE("interrupted before its first step, a run that starts from another's checkpoint has one of its own") {
  const TemporaryFolder folder;
  Setup first(folder / "first");
  make_two_checkpoints(first);
  Setup second(folder / "second");
  second.inputs.resume_from = folder / "first/checkpoints/step-4";
  second.inputs.on_ready = [] { send_signal(SIGTERM); };
  CHECK(train(second.inputs, config_of(12)).interrupted);
  CHECK(fs::exists(folder / "second/checkpoints/step-4/model.safetensors"));
}

TEST_CASE("a damaged metrics.jsonl is copied, and keeps its readable lines up to the checkpoint's step") {
  const TemporaryFolder folder;
  TrainConfig config = config_of(8);
  config.log_every = 1;
  config.schedule.shape = ScheduleShape::constant;
  Setup setup(folder / "run");
  train(setup.inputs, config);
  const fs::path metrics = folder / "run/metrics.jsonl", log = folder / "run/train.log";
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

TEST_CASE("metrics are on the disk before the checkpoint that refers to them") {
  const TemporaryFolder folder;
  TrainConfig config = config_of(8);
  config.tensorboard = true;
  std::vector<std::string> unsynced;
  int published = 0;
  set_file_hook([&](const std::string& call, const std::string& path) {
    const std::string name = fs::path(path).filename().string();
    const bool record = name == "metrics.jsonl" || contains(name, "tfevents");
    if (record && call == "write") unsynced.push_back(name);
    if (record && call == "fsync") unsynced.erase(std::remove(unsynced.begin(), unsynced.end(), name), unsynced.end());
    if (call != "rename" || name.rfind("step-", 0) != 0) return;
    ++published;
    CHECK(unsynced.empty());
  });
  Setup setup(folder / "run");
  train(setup.inputs, config);
  set_file_hook({});
  CHECK(published >= 2);
}

TEST_CASE("a run writes into its own regular files only") {
  for (const char* const name : {".lock", "metrics.jsonl", "train.log"}) {
    CAPTURE(name);
    const TemporaryFolder folder;
    fs::create_directories(folder / "run");
    write_text(folder / "precious", "mine");
    fs::create_symlink(folder / "precious", folder / "run" / name);
    Setup setup(folder / "run");
    const std::string message = message_of([&] { train(setup.inputs, config_of(4)); });
    CHECK_MESSAGE((contains(message, name) && contains(message, "it is a symbolic link")), message);
    CHECK(read_text(folder / "precious") == "mine");
    fs::remove(folder / "run" / name);
    REQUIRE(mkfifo((folder / "run" / name).c_str(), 0600) == 0);
    CHECK(contains(message_of([&] { train(setup.inputs, config_of(4)); }), "it is a pipe"));
  }
}

TEST_CASE("a kill between any two calls of the file system loses nothing") {
  // The child process is ended at its n-th call, without any clean-up, for every n there is.
  set_threads(1);
  const TemporaryFolder folder;
  TrainConfig config = config_of(4);
  config.save_every = 1;
  config.valid_every = 2;
  Setup unbroken(folder / "unbroken");
  train(unbroken.inputs, config);
  int64_t kills = 0;
  for (bool finished = false; !finished; ++kills) {
    CAPTURE(kills);
    const fs::path run = folder / "run";
    fs::remove_all(run);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      int64_t calls = 0;
      set_file_hook([&](const char*, const std::string&) {
        if (calls++ == kills) _exit(9);
      });
      Setup setup(run);
      train(setup.inputs, config);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    REQUIRE(WIFEXITED(status));
    finished = WEXITSTATUS(status) == 0;
    if (!finished) REQUIRE(WEXITSTATUS(status) == 9);

    const Checkpoints checkpoints(run / "checkpoints");
    if (const auto last = checkpoints.last()) {
      Setup loaded(folder / "loaded");
      CHECK_NOTHROW(load_model(find_model_file(*last), loaded.params));
      CHECK_NOTHROW(read_state(*last));
    }
    Setup second(run);
    CHECK(train(second.inputs, config).state.step == 4);
    CHECK(second.weights() == unbroken.weights());
    CHECK(tensors_of(run / "checkpoints/last") == tensors_of(folder / "unbroken/checkpoints/last"));
    CHECK(tensors_of(run / "checkpoints/best") == tensors_of(folder / "unbroken/checkpoints/best"));
    CHECK(comparable_metrics(run) == comparable_metrics(folder / "unbroken"));
    for (const auto& entry : fs::directory_iterator(run / "checkpoints"))
      CHECK(entry.path().filename().string()[0] != '.');
  }
  CHECK(kills > 80);
  set_threads(0);
}

TEST_CASE("a failing call of the file system is an Error, and what was saved before stays whole") {
  const TemporaryFolder folder;
  TrainConfig config = config_of(8);
  config.save_every = 2;
  int64_t failures = 0;
  for (bool finished = false; !finished; ++failures) {
    CAPTURE(failures);
    const fs::path run = folder / "run";
    fs::remove_all(run);
    int64_t calls = 0;
    set_file_hook([&](const char*, const std::string& path) {
      if (calls++ == failures) throw_file_error("write", path, ENOSPC);
    });
    Setup setup(run);
    const std::string message = message_of([&] { train(setup.inputs, config); });
    finished = message.empty();
    set_file_hook({});
    if (!finished)
      CHECK_MESSAGE((contains(message, "No space left on device") && contains(message, "free some space")), message);
    if (const auto last = Checkpoints(run / "checkpoints").last()) {
      Setup loaded(folder / "loaded");
      CHECK_NOTHROW(load_model(find_model_file(*last), loaded.params));
    }
  }
  CHECK(failures > 60);
}

TEST_CASE("a full disk is reported, and the checkpoint before it stays") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "small");
  if (::mount("tmpfs", (folder / "small").c_str(), "tmpfs", 0, "size=600k") != 0) {
    MESSAGE("skipped: a small file system cannot be mounted here");
    return;
  }
  struct Unmount {
    fs::path path;
    ~Unmount() { ::umount2(path.c_str(), MNT_DETACH); }
  } const unmount{folder / "small"};
  Setup setup(folder / "small/run", 20000);  // about 400 kB per checkpoint
  const std::string message = message_of([&] { train(setup.inputs, config_of(8)); });
  CHECK_MESSAGE((contains(message, "No space left on device") && contains(message, "small/run")), message);
  const Checkpoints checkpoints(folder / "small/run/checkpoints");
  REQUIRE(checkpoints.last());
  Setup loaded(folder / "loaded", 20000);
  CHECK_NOTHROW(load_model(find_model_file(*checkpoints.last()), loaded.params));
}

TEST_CASE("a run folder that cannot be written is refused before training") {
  const TemporaryFolder folder;
  write_text(folder / "file", "x");
  for (const fs::path& run : {folder / "file", folder / "file/run", fs::path("/proc/run")}) {
    Setup setup(run);
    setup.task.before_loss = [](const Context&) { FAIL("trained all the same"); };
    const std::string message = message_of([&] { train(setup.inputs, config_of(4)); });
    CHECK_MESSAGE(contains(message, run.string()), message);
    CHECK_MESSAGE((contains(message, "choose another folder") || contains(message, "check the path")), message);
  }
}

TEST_CASE("old checkpoints go, the best and the last never") {
  const TemporaryFolder folder;
  Setup setup(folder / "run");
  TrainConfig config = config_of(20);
  config.save_every = 2;
  config.valid_every = 3;
  config.min_delta = 1e9;  // the best is step 3
  config.keep_last = 3;
  train(setup.inputs, config);
  const Checkpoints checkpoints(folder / "run/checkpoints");
  CHECK(checkpoints.steps() == std::vector<int64_t>{3, 16, 18, 20});
  CHECK(fs::read_symlink(folder / "run/checkpoints/best") == "step-3");
  CHECK(find_model_file(folder / "run") == (folder / "run/checkpoints/best/model.safetensors").string());
  CHECK(contains(message_of([&] { find_model_file(folder / "none"); }), "there is no model here"));
}
