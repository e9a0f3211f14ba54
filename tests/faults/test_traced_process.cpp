// The tracer does what it says: it sees the calls of the program and its children, and what it does to one happens.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/syscall.h>

#include <cerrno>
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

const std::vector<std::string> train{"train", "--config", "lm.yaml", "--set", "train.steps=2", "threads=1"};

TEST_CASE("a failing call is one that the program sees, and its message names the file") {
  if (!tracing_problem().empty()) {
    MESSAGE("skipped: " << tracing_problem());
    return;
  }
  const Workplace place;
  write_inputs(place);
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

TEST_CASE("a file or link that cannot be examined: the message is as of any other call") {
  if (!tracing_problem().empty()) {
    MESSAGE("skipped: " << tracing_problem());
    return;
  }
  const Workplace place;
  write_inputs(place);
  REQUIRE(run(place, train).code == 0);
  for (const auto& [call, name] : {std::pair<long, std::string>(SYS_newfstatat, "lm/config.yaml"),
                                   {SYS_newfstatat, "last/state.json"},
                                   {SYS_newfstatat, "lm/tokenizer.json"}}) {
    OnCalls examine(at_file(call, name), {Verdict::Kind::fail, EIO});
    const TracedOutcome outcome = run_traced(place, {"eval", "runs/lm/checkpoints/last", "--split", "valid"}, examine);
    INFO(name, ", met ", examine.met, ": ", outcome.err);
    CHECK(outcome.code == 1);
    CHECK(contains(outcome.err, name));
    CHECK(contains(outcome.err, "Input/output error (check the disk and the path)"));
    CHECK(indecency(outcome) == "");
  }
}

TEST_CASE("metrics that cannot be examined are not taken for missing") {
  if (!tracing_problem().empty()) {
    MESSAGE("skipped: " << tracing_problem());
    return;
  }
  const Workplace place;
  write_inputs(place);
  REQUIRE(run(place, train).code == 0);
  const std::string before = place.read("runs/lm/metrics.jsonl");
  std::vector<std::string> longer = train;
  longer.push_back("train.steps=3");
  OnCalls examine(at_file(SYS_newfstatat, "lm/metrics.jsonl"), {Verdict::Kind::fail, EIO});
  const TracedOutcome outcome = run_traced(place, longer, examine);
  INFO(outcome.err);
  CHECK(examine.met > 0);
  CHECK(outcome.code == 1);
  CHECK(contains(outcome.err, "metrics.jsonl: Input/output error"));
  CHECK(place.read("runs/lm/metrics.jsonl") == before);
}

TEST_CASE("a text that cannot be examined is not left out of a folder of texts") {
  if (!tracing_problem().empty()) {
    MESSAGE("skipped: " << tracing_problem());
    return;
  }
  const Workplace place;
  write_inputs(place);
  for (const int error : {EIO, EACCES}) {
    OnCalls examine(at_file(SYS_newfstatat, "text/a.txt"), {Verdict::Kind::fail, error});
    const TracedOutcome outcome =
        run_traced(place, {"data", "check", "--config", "lm.yaml", "--set", "data.train=[text]"}, examine);
    INFO(outcome.err);
    CHECK(examine.met > 0);
    CHECK(outcome.code != 0);
    CHECK(contains(outcome.err, "text/a.txt"));
    CHECK(indecency(outcome) == "");
  }
}

TEST_CASE("verify goes on to the other runs after one that cannot be examined") {
  if (!tracing_problem().empty()) {
    MESSAGE("skipped: " << tracing_problem());
    return;
  }
  const Workplace place;
  write_inputs(place);
  REQUIRE(run(place, train).code == 0);
  std::filesystem::copy(place / "runs/lm", place / "runs/other", std::filesystem::copy_options::recursive);
  OnCalls examine(at_file(SYS_newfstatat, "lm/config.yaml"), {Verdict::Kind::fail, EACCES});
  const TracedOutcome outcome = run_traced(place, {"verify", "runs/lm", "runs/other"}, examine);
  INFO(outcome.err);
  CHECK(examine.met > 0);
  CHECK(outcome.code == 1);
  CHECK(contains(outcome.err, "lm/config.yaml: Permission denied"));
  CHECK(contains(outcome.out, "runs/other: "));
  CHECK(indecency(outcome) == "");
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
  if (!tracing_problem().empty()) {
    MESSAGE("skipped: " << tracing_problem());
    return;
  }
  const std::string checkpoints = "runs/lm/checkpoints/";
  for (const int opening : {1, 2, 3}) {  // the first checks, the second reads the state, there is no third
    const Workplace place;
    write_inputs(place);
    REQUIRE(run(place, {"train", "--config", "lm.yaml", "--set", "train.steps=2", "threads=1", "train.save_every=1",
                        "train.keep_last=2"})
                .code == 0);
    const auto saved = [&] {
      return run(place, {"train", "--config", "lm.yaml", "--set", "train.steps=6", "threads=1", "train.save_every=1",
                         "train.keep_last=2"});
    };
    AtOpening training("checkpoints/step-2/state.json", opening, [&] { REQUIRE(saved().code == 0); });
    const TracedOutcome outcome = run_traced(place, {"verify", "runs/lm"}, training);
    INFO("opening ", opening, " of ", training.openings, ": ", outcome.out, outcome.err);
    CHECK(outcome.code == 0);
    if (opening <= training.openings) CHECK(contains(outcome.out, "checkpoints/step-6"));
  }
}

TEST_CASE("short reads and writes, one byte at a time, change nothing") {
  if (!tracing_problem().empty()) {
    MESSAGE("skipped: " << tracing_problem());
    return;
  }
  const Workplace place, other;
  write_inputs(place);
  write_inputs(other);
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
  if (!tracing_problem().empty()) {
    MESSAGE("skipped: " << tracing_problem());
    return;
  }
  const Workplace place;
  const Kind& sweep = kind_called("sweep");
  write_inputs(place);
  const auto in_child = at_file(SYS_fsync, "state.json");
  OnCalls kill(in_child, {Verdict::Kind::kill_group});
  CHECK(run_traced(place, sweep.command, kill).signal == SIGKILL);
  CHECK(kill.met == 1);
  CHECK(kill.processes.size() >= 2);
  CHECK(place.read("runs/grid/seed=1/checkpoints/last/state.json") == "");
}

TEST_CASE("what does not end within the limit is killed and reported") {
  if (!tracing_problem().empty()) {
    MESSAGE("skipped: " << tracing_problem());
    return;
  }
  const Workplace place;
  write_inputs(place);
  OnCalls none([](const CallStop&) { return false; }, {});
  const TracedOutcome outcome =
      run_traced(place, {"train", "--config", "lm.yaml", "--set", "train.steps=100000000", "train.save_every=0"}, none,
                 std::chrono::seconds(1));
  CHECK(outcome.hung);
  CHECK(outcome.signal == SIGKILL);
}

}  // namespace
}  // namespace capstan::testing
