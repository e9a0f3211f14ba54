// `capstan sweep`: several runs by one command, broken off and gone on with.
#include <doctest/doctest.h>
#include <signal.h>

#include <thread>

#include "core/io/json.hpp"
#include "tests/cli/support/interruption.hpp"

namespace capstan::testing {
namespace {

/// lm.yaml with these values, as sweep.yaml.
void write_sweep(const Workplace& place, const std::string& values) {
  write_samples(place);
  place.write("sweep.yaml", place.read("lm.yaml") + "sweep: " + values + "\n");
}

const Words command = "sweep --config sweep.yaml --set name=grid";

TEST_CASE("a sweep trains what train trains, prints one table, and has nothing to do the second time") {
  const Workplace place;
  write_sweep(place, "{train.lr: [1e-3, 1e-2], seed: [1, 2]}");
  const Outcome first = succeed(place, command);
  const std::vector<std::string> lines = lines_of(first.out);
  REQUIRE(lines.size() == 12);  // of what, what is the same, header, four runs; a gap, a title, header, two groups
  CHECK(contains(lines[0], "language-model: "));
  CHECK(contains(lines[1], "the same in all: step "));
  check_contains(lines[2], {"seed", "lr"});
  CHECK(contains(lines[8], "mean ± standard deviation"));
  for (const std::string lr : {"1e-3", "1e-2"})
    for (const std::string seed : {"1", "2"}) {
      const std::string name = "lr=" + lr + ",seed=" + seed;
      INFO(name);
      CHECK(contains(first.out, "runs/grid/" + name));
      succeed(place, "train --config lm.yaml --set name=single train.lr=" + lr + " seed=" + seed);
      CHECK(same_model(place, "grid/" + name, "single"));
      fs::remove_all(place / "runs/single");
    }
  const auto before = place.content("runs/grid");
  const Outcome second = succeed(place, command);
  CHECK(second.out == first.out);
  CHECK(contains(second.err, "run 4 of 4: runs/grid/lr=1e-2,seed=2 is finished"));
  CHECK((place.content("runs/grid") == before));
  // compare prints it again; a run's own folder is one that train goes on with.
  CHECK(run_shell(place, "$capstan compare runs/grid/*").out == first.out);
  // A sweep beside a run, even one of its own, is its runs.
  CHECK(succeed(place, "compare runs/grid runs/grid/lr=1e-3,seed=1").out == first.out);
  const Outcome more = succeed(place, "train --config runs/grid/lr=1e-3,seed=1/config.yaml --set train.steps=7");
  CHECK(contains(more.err, "resumed from"));
}

TEST_CASE("a run that fails is told, the others go on, and the exit code is 1") {
  const Workplace place;
  write_sweep(place, "{data.train: [[nowhere], [text]], seed: [1, 2]}");
  // What is known to fail stops the sweep before its first run.
  check_refused(place, "no data", command, "data.train.0: nowhere: no such file or folder", 2);
  CHECK_FALSE(fs::exists(place / "runs/grid"));
  fs::create_directory(place / "nowhere");  // without text
  const Outcome none = run(place, "sweep --config sweep.yaml --set name=none sweep.data.train=[[nowhere]]");
  CHECK(contains(none.err, "2 of 2 runs failed"));
  CHECK_FALSE(contains(none.err, "next: "));
  const Outcome outcome = run(place, command);
  CHECK(outcome.code == 1);
  CHECK(indecency(outcome) == "");
  check_contains(outcome.err, {"failed: runs/grid/train=nowhere,seed=1: exit code 1", "2 of 4 runs failed"});
  CHECK(lines_of(outcome.out).size() >= 3);
  CHECK(fs::exists(place / "runs/grid/train=text,seed=2/checkpoints/last"));
  // Once the fault is mended, only those that failed are trained.
  place.write("nowhere/a.txt", place.read("text/a.txt"));
  const Outcome mended = succeed(place, command);
  CHECK(contains(mended.err, "train=text,seed=2 is finished"));
  CHECK_FALSE(contains(mended.err, "train=nowhere,seed=1 is finished"));
}

TEST_CASE("SIGTERM saves and stops the sweep with code 75; the same command ends as an unbroken one") {
  const Workplace place;
  write_sweep(place, "{seed: [1, 2]}");
  Words longer = command + "train.steps=120 train.save_every=0";
  for (const auto& [signal, at] : {std::pair<int, std::string>{SIGTERM, "grid/seed=1"}, {SIGINT, "grid/seed=2"}}) {
    Process process(place, longer);
    REQUIRE(wait_for_step(process, place, at, 20));
    process.send(signal);
    const Outcome outcome = process.wait();
    INFO(outcome.err);
    CHECK(outcome.code == 75);
    CHECK(indecency(outcome) == "");
    CHECK(contains(outcome.err, "the same command resumes"));
    CHECK(outcome.out == "");
  }
  succeed(place, longer);
  for (const std::string seed : {"1", "2"}) {
    succeed(place,
            "train --config lm.yaml --set train.steps=120 train.save_every=0 name=whole" + seed + " seed=" + seed);
    check_same_weights(place, "grid/seed=" + seed, "whole" + seed);
    check_same_metrics(place, "grid/seed=" + seed, "whole" + seed);
  }
}

TEST_CASE("a run saves and stops when its sweep is killed") {
  const Workplace place;
  write_sweep(place, "{seed: [1]}");
  Words endless = command + "train.steps=100000000 train.valid_every=0 train.save_every=0";
  Process process(place, endless);
  REQUIRE(wait_for_step(process, place, "grid/seed=1", 5));
  process.send(SIGKILL);
  CHECK(process.wait().signal == SIGKILL);
  const auto saved = [&] { return fs::exists(place / "runs/grid/seed=1/checkpoints/last"); };
  for (int i = 0; i < 3000 && !saved(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(saved());
}

TEST_CASE("every run's peak of memory is its own") {
  const Workplace place;
  write_sweep(place, "{model.width: [512, 16]}");
  succeed(place, command);
  const auto peak = [&](const std::string& run) {
    int64_t most = 0;
    for (const nlohmann::json& event : events_of(place, "grid/" + run))
      most = std::max(most, event.value("peak_rss_bytes", int64_t{0}));
    return most;
  };
  CHECK(peak("width=16") < peak("width=512") - 20'000'000);
}

TEST_CASE("what a sweep refuses, before it runs anything") {
  const Workplace place;
  write_sweep(place, "{train.lr: [1e-3, fast], seed: [1, 2]}");
  const std::vector<Refusal> refusals = {
      {"a value that cannot be", command, "sweep.yaml: ... train.lr ... \"fast\"", 2},
      {"train", "train --config sweep.yaml", "sweep.yaml: ... train them with capstan sweep", 2},
      {"no file", "sweep", "--config", 2},
      {"the folder of a run",
       {"sweep", "--config", "lm.yaml", "--set", "sweep.seed=[1, 2]"},
       "runs/lm ... a single run ... another name",
       1,
       [](const Workplace& p) { succeed(p, "train --config lm.yaml"); }},
  };
  check_all_refused(place, refusals);
  CHECK_FALSE(fs::exists(place / "runs/grid"));
  CHECK(contains(succeed(place, "config check --config lm.yaml --set sweep.seed=[1,2]").out,
                 "the configurations of 2 runs are valid"));
}

}  // namespace
}  // namespace capstan::testing
