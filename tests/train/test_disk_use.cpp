// What a run leaves on the disk: no rows that were never touched, nothing before the first step, and what is removed
// from a run that will not be resumed.
#include <doctest/doctest.h>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/strings/strings.hpp"
#include "tests/support/threads.hpp"
#include "train/checkpointed_runs.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/checkpoints/open_model.hpp"
#include "train/rank_threads.hpp"

using namespace capstan;
using namespace capstan::testing;
namespace {

constexpr int64_t many_tokens = 400'000;  // of which the data have some hundred

int64_t size_of(const fs::path& path) { return static_cast<int64_t>(fs::file_size(path)); }

/// Nothing changes in it: the first evaluation, of step 3, stays the best.
TrainConfig stalled(int64_t steps, int64_t keep_last = 2) {
  TrainConfig config = config_of(steps);
  config.keep_last = keep_last;
  config.save_every = 1;
  config.lr = 1e-30;
  config.schedule.shape = ScheduleShape::constant;  // it may go on beyond these steps
  return config;
}

std::vector<int64_t> resumable_steps(const fs::path& run) {
  const Checkpoints checkpoints(run / "checkpoints");
  std::vector<int64_t> found;
  for (const int64_t step : checkpoints.steps())
    if (open_checkpoint(checkpoints.of_step(step), Reading::all).can_resume()) found.push_back(step);
  return found;
}

/// A run whose best checkpoint is not the last one, with a third one.
void make_three_checkpoints(const fs::path& folder) {
  Setup setup(folder);
  TrainConfig config = config_of(12);
  config.keep_last = 5;
  config.save_every = 4;
  config.valid_every = 4;
  config.lr = 1e-30;  // nothing changes: the first one stays the best
  train(setup.inputs, config);
}

}  // namespace

TEST_CASE("rows of zeros are not in a checkpoint, whatever the number of ranks, and a run goes on to the same bits") {
  const TemporaryFolder folder;
  const Threads threads_used(1);
  const auto train_to = [&](const std::string& name, int ranks, int64_t steps) {
    run_ranks(ranks, [&](Communicator& communicator) {
      Setup setup(folder / name, many_tokens, /*fresh_each_epoch=*/true);
      setup.inputs.ranks = &communicator;
      TrainConfig config = config_of(steps);
      config.save_every = 2;
      train(setup.inputs, config);
    });
    return tensors_of(folder / name / "checkpoints/last");
  };
  const std::string whole = train_to("one", 1, 7);
  CHECK(size_of(folder / "one/checkpoints/last/model.safetensors") < 100'000);  // instead of 1.6 MB
  CHECK(size_of(folder / "one/checkpoints/last/optimizer.safetensors") < 300'000);
  CHECK(read_state(folder / "one/checkpoints/last").step == 7);
  for (const int ranks : {2, 3}) CHECK(train_to("ranks" + std::to_string(ranks), ranks, 7) == whole);
  set_file_hook([](const std::string&, const std::string& path) {
    if (contains(path, "step-4")) throw Error("the disk fails");
  });
  CHECK(contains(message_of([&] { train_to("resumed", 1, 7); }), "the disk fails"));
  set_file_hook({});
  REQUIRE(read_state(folder / "resumed/checkpoints/last").step == 3);
  CHECK(train_to("resumed", 1, 7) == whole);
  const SafetensorsFile file((folder / "one/checkpoints/last/model.safetensors").string());
  CHECK(file.at("weight").shape == std::vector<int64_t>{many_tokens});
  Setup loaded(folder / "loaded", many_tokens);
  load_model(file, loaded.params);  // over weights that are not zero
  const std::vector<real> weights = loaded.weights();
  CHECK(std::count(weights.begin(), weights.end(), real{0}) > many_tokens - 1000);
  CHECK(std::count(weights.begin(), weights.end(), real{0}) < many_tokens);
}

TEST_CASE_FIXTURE(OneRun, "a run saves nothing before its first step") {
  TrainConfig config = config_of(4);
  config.save_every = 2;
  // 3: the best so far
  CHECK(join(published_by([&] { train(setup.inputs, config); })) == "step-2, step-3, step-4");
}

TEST_CASE("interrupted before its first step, a run saves nothing; a warm start is saved if it is evaluated") {
  const TemporaryFolder folder;
  const WarmStart start{{{"/old/model.safetensors", "0123", 6, ""}}, {}, {}};
  for (const bool warm : {false, true})
    for (const bool validates : {false, true})
      for (const bool interrupted : {false, true}) {
        CAPTURE(warm);
        CAPTURE(validates);
        CAPTURE(interrupted);
        Setup setup(folder / fmt::format("{}{}{}", warm, validates, interrupted));
        const TrainConfig config = stalled(4);  // the start stays the best
        Communicator one_process;
        Session session({setup.inputs.folder, setup.inputs.identity, 1, {}, 4, validates}, config, one_process);
        LocalStep step(setup.task, setup.params, setup.data, session.config());
        REQUIRE_FALSE(session.resume(step.parts(session.state())));
        if (warm) session.start_from(start);
        session.record();
        if (interrupted) send_signal(SIGTERM);
        CHECK(train(session, step, {setup.task, setup.data, validates ? &setup.held_out : nullptr}).interrupted ==
              interrupted);
        CHECK(Checkpoints(setup.inputs.folder / "checkpoints").steps().empty() == interrupted);
        CHECK(fs::exists(setup.inputs.folder / "checkpoints/step-0") == (warm && validates && !interrupted));
      }
}

TEST_CASE("the best checkpoint has the optimizer's state until two newer ones can be resumed from") {
  const TemporaryFolder folder;
  const auto after = [&](int64_t keep_last, int64_t steps) {
    Setup setup(folder / ("keep" + std::to_string(keep_last)));
    train(setup.inputs, stalled(steps, keep_last));
    REQUIRE(checkpoint_name(setup.inputs.folder / "checkpoints/best") == "step-3");
    CHECK(damage_of(setup.inputs.folder / "checkpoints/best") == "");
    return resumable_steps(setup.inputs.folder);
  };
  using Steps = std::vector<int64_t>;
  CHECK(after(2, 4) == Steps{3, 4});
  CHECK(after(2, 5) == Steps{4, 5});
  CHECK(after(1, 8) == Steps{3, 8});
  CHECK(after(3, 5) == Steps{3, 4, 5});
  CHECK(after(3, 6) == Steps{4, 5, 6});
  const fs::path best = folder / "keep2/checkpoints/best";
  CHECK(read_state(best).step == 3);
  CHECK_FALSE(fs::exists(best / "optimizer.safetensors"));
  int calls = 0;  // it is done once
  set_file_hook([&](const char*, const std::string& path) { calls += contains(path, "step-3") ? 1 : 0; });
  CHECK(after(2, 8) == Steps{7, 8});
  set_file_hook({});
  CHECK(calls == 0);
}

TEST_CASE("the best checkpoint keeps the optimizer's state where a newer one is damaged") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  set_file_hook([&](const std::string& call, const std::string& path) {
    if (call == "rename" && contains(path, "/step-5")) flip_bit(run / "checkpoints/step-4/optimizer.safetensors", 300);
  });
  Setup setup(run);
  train(setup.inputs, stalled(5));
  set_file_hook({});
  CHECK(resumable_steps(run) == std::vector<int64_t>{3, 5});
  train(setup.inputs, stalled(6));
  CHECK(resumable_steps(run) == std::vector<int64_t>{5, 6});
}

TEST_CASE("two checkpoints to go on from, at whichever call a run is killed") {
  const TemporaryFolder folder;
  const Threads threads_used(1);
  const auto train_to = [&](const fs::path& run, int64_t steps) {
    Setup setup(run);
    train(setup.inputs, stalled(steps));
  };
  train_to(folder / "made", 4);
  train_to(folder / "unbroken", 4);
  train_to(folder / "unbroken", 6);
  const std::string best = read_text(folder / "made/checkpoints/best/model.safetensors");
  int kills = 0;
  for (bool finished = false; !finished; ++kills) {
    CAPTURE(kills);
    const fs::path run = folder / "run";
    fs::remove_all(run);
    fs::copy(folder / "made", run, fs::copy_options::recursive);
    finished = finishes(kills, [&] { train_to(run, 5); });
    CHECK(read_text(open_model(run).path()) == best);
    CHECK(damage_of(run / "checkpoints/best") == "");
    CHECK(resumable_steps(run).size() >= 2);
    train_to(run, 6);
    CHECK(tensors_of(run / "checkpoints/last") == tensors_of(folder / "unbroken/checkpoints/last"));
    CHECK(read_text(open_model(run).path()) == best);
    CHECK_FALSE(fs::exists(in_run(run / "checkpoints/best/optimizer.safetensors")));
  }
  CHECK(kills > 20);
}

TEST_CASE("who wants to go on from a best checkpoint without the optimizer's state is told where it is") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run", checkpoints = run / "checkpoints";
  Setup setup(run);
  train(setup.inputs, stalled(5));
  setup.inputs.resume_from = checkpoints / "step-3";
  std::string message = message_of([&] { train(setup.inputs, stalled(6)); });
  check_contains(message, {"or by training", (checkpoints / "step-5").string(),
                           "train.init_from=" + (checkpoints / "step-3").string()});
  setup.inputs.resume_from.reset();
  for (const char* const step : {"step-4", "step-5"}) flip_bit(checkpoints / step / "optimizer.safetensors", 300);
  message = message_of([&] { train(setup.inputs, stalled(6)); });
  check_contains(message, {"step-5/optimizer.safetensors", "without the optimizer", (checkpoints / "step-3").string(),
                           "train.init_from"});
  CHECK(Checkpoints(checkpoints).steps() == std::vector<int64_t>{3, 4, 5});
}

TEST_CASE("what only resuming needs can be removed: killed between any two calls, the best model stays") {
  const TemporaryFolder folder;
  make_three_checkpoints(folder / "made");
  const std::string best = read_text(folder / "made/checkpoints/best/model.safetensors");
  REQUIRE(best != read_text(folder / "made/checkpoints/last/model.safetensors"));
  int kills = 0;
  for (bool finished = false; !finished; ++kills) {
    CAPTURE(kills);
    const fs::path run = folder / "run";
    fs::remove_all(run);
    fs::copy(folder / "made", run, fs::copy_options::recursive);
    Checkpoints checkpoints(run / "checkpoints");
    finished = finishes(kills, [&] { checkpoints.remove_for_resuming(); });
    CHECK(read_text(open_model(run).path()) == best);
    CHECK(damage_of(run / "checkpoints/best") == "");
    CHECK(damage_of(run / "checkpoints/last") == "");
    if (read_state(in_run(run / "checkpoints/last")).has_optimizer()) {  // it goes on as if nothing had been
      Setup resumed(run);
      CHECK(train(resumed.inputs, config_of(13)).state.step == 13);
      continue;
    }
    checkpoints.recover();
    checkpoints.remove_for_resuming();
    CHECK(read_text(open_model(run).path()) == best);
    CHECK_FALSE(fs::exists(in_run(run / "checkpoints/last/model.safetensors")));
    CHECK(contains(message_of([&] { open_model(in_run(run / "checkpoints/last")); }), "those of the best are in"));
    CHECK(checkpoints.for_resuming().empty());
    CHECK(checkpoints.steps().size() == 2);
    for (const auto& entry : fs::recursive_directory_iterator(run))
      CHECK(entry.path().filename() != "optimizer.safetensors");
  }
  CHECK(kills > 10);
}

TEST_CASE("a run without what resuming needs is refused with the remedy, unless it has nothing left to do") {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  make_three_checkpoints(run);
  Checkpoints(run / "checkpoints").remove_for_resuming();
  const auto train_to = [&](int64_t steps) {
    Setup setup(run);
    TrainConfig config = config_of(steps);
    config.valid_every = 4;
    return message_of([&] { train(setup.inputs, config); });
  };
  CHECK(train_to(12) == "no error");
  const std::string message = train_to(16);
  check_contains(message, {"removed when the run ended", "train.init_from=" + (run / "checkpoints").string()});
  Checkpoints(run / "checkpoints").remove_for_resuming(/*tensors=*/true);
  CHECK(contains(message_of([&] { open_model(run); }), "trial of capstan autotune"));
  CHECK(damage_of(run / "checkpoints/last") == "");
}

TEST_CASE("nothing is removed from a run whose best or last checkpoint is damaged") {
  const TemporaryFolder folder;
  for (const char* const link : {"best", "last"}) {
    const fs::path run = folder / link;
    make_three_checkpoints(run);
    flip_bit(in_run(run / "checkpoints" / link / "model.safetensors"), 300);
    const auto files = [&] {
      return std::distance(fs::recursive_directory_iterator(run), fs::recursive_directory_iterator());
    };
    const auto before = files();
    CHECK(contains(message_of([&] { Checkpoints(run / "checkpoints").remove_for_resuming(); }), "nothing is removed"));
    CHECK(files() == before);
  }
}
