// Files of a run while the file system fails, or the process is killed between two of its calls.
#include <doctest/doctest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "core/io/file.hpp"
#include "tests/support/threads.hpp"
#include "train/checkpointed_runs.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/checkpoints/open_model.hpp"

using namespace capstan;
using namespace capstan::testing;
TEST_CASE("metrics are on the disk before the checkpoint that refers to them") {
  const TemporaryFolder folder;
  const TrainConfig config = config_of(8);
  std::vector<std::string> unsynced;
  int published = 0;
  set_file_hook([&](const std::string& call, const std::string& path) {
    const std::string name = fs::path(path).filename().string();
    const bool record = name == "metrics.jsonl";
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
    check_contains(message, {name, "it is a symbolic link"});
    CHECK(read_text(folder / "precious") == "mine");
    fs::remove(folder / "run" / name);
    REQUIRE(mkfifo((folder / "run" / name).c_str(), 0600) == 0);
    CHECK(contains(message_of([&] { train(setup.inputs, config_of(4)); }), "it is a pipe"));
  }
}

/// A child process is ended at its n-th call of the file system, without any clean-up, for every n there is.
/// `publish_later_above`: bytes of a checkpoint. Returns the number of kills.
static int64_t kill_at_every_call(double publish_later_above) {
  const Threads threads_used(1);
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
    finished = finishes(kills, [&] {
      Setup setup(run);
      setup.inputs.publish_later_above = publish_later_above;
      train(setup.inputs, config);
    });

    const Checkpoints checkpoints(run / "checkpoints");
    if (const auto last = checkpoints.last()) {
      Setup loaded(folder / "loaded");
      CHECK_NOTHROW(load_model(open_model(*last), loaded.params));
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
  return kills;
}

TEST_CASE("a kill between any two calls of the file system loses nothing") {
  CHECK(kill_at_every_call(large_checkpoint) > 80);
  CHECK(kill_at_every_call(0) > 80);
}

TEST_CASE("a large checkpoint that a killed process has only written is the last one when the run goes on") {
  const Threads threads_used(1);
  const TemporaryFolder folder;
  TrainConfig config = config_of(8);
  config.save_every = 3;
  REQUIRE_FALSE(finishes(-1, [&] {
    Setup setup(folder / "run");
    setup.inputs.publish_later_above = 0;
    setup.task.before_loss = [&](const Context&) {
      if (fs::exists(folder / "run/checkpoints/.unfinished-step-6/state.json")) _exit(9);
    };
    train(setup.inputs, config);
  }));
  Checkpoints checkpoints(folder / "run/checkpoints");
  REQUIRE(checkpoints.last());
  CHECK(checkpoints.last()->filename() == "step-3");
  checkpoints.recover();
  REQUIRE(checkpoints.last());
  CHECK(checkpoints.last()->filename() == "step-6");
  CHECK(names_in_folder(checkpoints.folder().string()) == std::vector<std::string>{"run.json", "step-3", "step-6"});
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
    finished = message == "no error";
    set_file_hook({});
    if (!finished) check_contains(message, {"No space left on device", "free some space"});
    if (const auto last = Checkpoints(run / "checkpoints").last()) {
      Setup loaded(folder / "loaded");
      CHECK_NOTHROW(load_model(open_model(*last), loaded.params));
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
  Setup setup(folder / "small/run", 60000);  // about 480 kB per checkpoint
  const std::string message = message_of([&] { train(setup.inputs, config_of(8)); });
  check_contains(message, {"No space left on device", "small/run"});
  const Checkpoints checkpoints(folder / "small/run/checkpoints");
  REQUIRE(checkpoints.last());
  Setup loaded(folder / "loaded", 60000);
  CHECK_NOTHROW(load_model(open_model(*checkpoints.last()), loaded.params));
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
