// The tracer does what it says: it sees the calls of the program and its children, and what it does to one happens.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/syscall.h>

#include <functional>
#include <set>

#include "tests/faults/kinds.hpp"
#include "tests/faults/traced_process.hpp"

namespace capstan::testing {
namespace {

/// Applies a verdict to the calls that a condition picks.
class OnCalls final : public CallObserver {
 public:
  using Condition = std::function<bool(const CallStop&)>;
  OnCalls(Condition condition, Verdict verdict) : condition_(std::move(condition)), verdict_(verdict) {}

  Verdict before(const CallStop& stop) override {
    processes.insert(stop.process);
    ++calls;
    if (!condition_(stop)) return {};
    ++met;
    return verdict_;
  }

  int calls = 0, met = 0;
  std::set<int64_t> processes;

 private:
  Condition condition_;
  Verdict verdict_;
};

OnCalls::Condition at_file(long call, const std::string& ending) {
  return [call, ending](const CallStop& stop) {
    return stop.call->number == call && stop.path.size() >= ending.size() &&
           stop.path.compare(stop.path.size() - ending.size(), ending.size(), ending) == 0;
  };
}

const Words train = "train --config lm.yaml --set train.steps=2 threads=1";

struct InputPlace : Workplace {
  InputPlace() { write_inputs(*this); }
};

bool cannot_trace() {
  if (!tracing_problem().empty()) MESSAGE("skipped: " << tracing_problem());
  return !tracing_problem().empty();
}

TEST_CASE("a failing call is one that the program sees, and its message names the file") {
  if (cannot_trace()) return;
  const InputPlace place;
  OnCalls full(at_file(SYS_write, "model.safetensors"), {Verdict::Kind::fail, ENOSPC});
  const TracedOutcome outcome = run_traced(place, train, full);
  CHECK(full.met > 0);
  CHECK(outcome.code == 1);
  CHECK(contains(outcome.err, "model.safetensors: No space left on device"));
  OnCalls closing(at_file(SYS_close, "model.safetensors"), {Verdict::Kind::fail_after, EIO});
  const TracedOutcome second = run_traced(place, train, closing);
  CHECK(second.code == 1);
  CHECK(contains(second.err, "Input/output error"));
  OnCalls none([](const CallStop&) { return false; }, {});
  CHECK(run_traced(place, train, none).code == 0);
  CHECK(none.calls > 100);
}

TEST_CASE("what cannot be examined is named, not taken for missing, and the message is as of any other call") {
  if (cannot_trace()) return;
  const InputPlace place;
  REQUIRE(run(place, train).code == 0);
  const std::string metrics = place.read("runs/lm/metrics.jsonl");
  std::filesystem::copy(place / "runs/lm", place / "runs/other", std::filesystem::copy_options::recursive);
  struct Row {
    std::string file;
    int error;
    Words command;
    std::string says, out = "";
  };
  const std::string advice = "Input/output error (check the disk and the path)";
  const Words eval = "eval runs/lm/checkpoints/step-2 --split valid";
  const Words texts = "data check --config lm.yaml --set data.train=[text]";
  for (const Row& row : std::vector<Row>{
           {"lm/config.yaml", EIO, eval, advice},
           {"step-2/state.json", EIO, eval, "cannot be opened: Input/output error"},
           {"lm/tokenizer.json", EIO, eval, advice},
           {"lm/metrics.jsonl", EIO, train + "train.steps=3", "metrics.jsonl: Input/output error"},
           {"text/a.txt", EIO, texts, "text/a.txt"},
           {"text/a.txt", EACCES, texts, "text/a.txt"},
           // verify goes on to the other runs.
           {"lm/config.yaml", EACCES, "verify runs/lm runs/other", "lm/config.yaml: Permission denied", "runs/other: "},
       }) {
    OnCalls examine(at_file(SYS_newfstatat, row.file), {Verdict::Kind::fail, row.error});
    const TracedOutcome outcome = run_traced(place, row.command, examine);
    INFO(row.command[0], " ", row.file, ", met ", examine.met, ": ", outcome.err);
    CHECK(examine.met > 0);
    CHECK(outcome.code == 1);
    CHECK(contains(outcome.err, row.file));
    CHECK(contains(outcome.err, row.says));
    CHECK(contains(outcome.out, row.out));
    CHECK(indecency(outcome) == "");
    CHECK(place.read("runs/lm/metrics.jsonl") == metrics);
  }
}

/// Calls `act` at the n-th opening of a file.
class AtOpening final : public CallObserver {
 public:
  AtOpening(std::string ending, int opening, std::function<void()> act)
      : at_(at_file(SYS_openat, ending)), opening_(opening), act_(std::move(act)) {}

  Verdict before(const CallStop& stop) override {
    if (at_(stop) && ++openings == opening_) act_();
    return {};
  }
  int openings = 0;

 private:
  OnCalls::Condition at_;
  int opening_;
  std::function<void()> act_;
};

TEST_CASE("verify: checkpoints that a training process removes meanwhile are not damaged, and new ones are read") {
  if (cannot_trace()) return;
  const std::string checkpoints = "runs/lm/checkpoints/";
  for (const int opening : {1, 2, 3}) {  // the first checks, the second reads the state, there is no third
    const InputPlace place;
    REQUIRE(
        run(place, "train --config lm.yaml --set train.steps=2 threads=1 train.save_every=1 train.keep_last=2").code ==
        0);
    const auto saved = [&] {
      return run(place, "train --config lm.yaml --set train.steps=6 threads=1 train.save_every=1 train.keep_last=2");
    };
    AtOpening training("checkpoints/step-2/state.json", opening, [&] { REQUIRE(saved().code == 0); });
    const TracedOutcome outcome = run_traced(place, "verify runs/lm", training);
    INFO("opening ", opening, " of ", training.openings, ": ", outcome.out, outcome.err);
    CHECK(outcome.code == 0);
    if (opening <= training.openings) CHECK(contains(outcome.out, "checkpoints/step-6"));
  }
}

TEST_CASE("short reads and writes, one byte at a time, change nothing") {
  if (cannot_trace()) return;
  const InputPlace place, other;
  REQUIRE(run(other, train).code == 0);
  for (const long call : {SYS_read, SYS_write}) {
    OnCalls slow(
        [&](const CallStop& stop) {
          return stop.call->number == call && stop.path.rfind(place.folder().string(), 0) == 0 && stop.arguments[2] > 0;
        },
        {Verdict::Kind::shorten, 1});
    std::filesystem::remove_all(place / "runs");
    REQUIRE(run_traced(place, train, slow).code == 0);
    CHECK(slow.met > (call == SYS_write ? 1000 : 10));
    const std::string model = "runs/lm/checkpoints/last/model.safetensors";
    const bool same = place.read(model) == other.read(model);
    CHECK(same);
  }
}

TEST_CASE("a kill at a call ends the process there; with its children, all of them") {
  if (cannot_trace()) return;
  const InputPlace place;
  const Kind& sweep = kind_called("sweep");
  const auto in_child = at_file(SYS_fsync, "state.json");
  OnCalls kill(in_child, {Verdict::Kind::kill_group});
  CHECK(run_traced(place, sweep.command, kill).signal == SIGKILL);
  CHECK(kill.met == 1);
  CHECK(kill.processes.size() >= 2);
  CHECK(place.read("runs/grid/seed=1/checkpoints/last/state.json") == "");
}

TEST_CASE("what does not end within the limit is killed and reported") {
  if (cannot_trace()) return;
  const InputPlace place;
  OnCalls none([](const CallStop&) { return false; }, {});
  const TracedOutcome outcome = run_traced(
      place, "train --config lm.yaml --set train.steps=100000000 train.save_every=0", none, std::chrono::seconds(1));
  CHECK(outcome.hung);
  CHECK(outcome.signal == SIGKILL);
}

}  // namespace
}  // namespace capstan::testing
