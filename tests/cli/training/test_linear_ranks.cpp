// Linear classifiers trained by several processes, started by mpirun.
#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/cli/support/interruption.hpp"
#include "tests/cli/support/ranks.hpp"
#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

/// Texts that some words tell apart; with `several`, of any number of labels.
std::string linear_rows(int count, int classes, bool several = false) {
  std::string text;
  uint32_t seed = 7;
  const auto random = [&](uint32_t below) {
    seed = seed * 1664525U + 1013904223U;
    return (seed >> 8) % below;
  };
  for (int i = 0; i < count; ++i) {
    const auto label = random(static_cast<uint32_t>(classes)), other = random(static_cast<uint32_t>(classes));
    const auto topic = random(10) == 0 ? other : label;
    text += "c" + std::to_string(label) + (several && other != label ? ",c" + std::to_string(other) : "") +
            "\tof day " + std::to_string(random(97)) + " topic" + std::to_string(topic) +
            (several ? " topic" + std::to_string(other) : "") + " w" + std::to_string(random(300)) + "\n";
  }
  return text;
}

struct LinearJob {
  std::string name;
  std::string train;
  Words more;
};

bool ranks_are_unavailable() {
  const std::optional<std::string> reason = no_mpi();
  if (reason) MESSAGE("skipped: " << *reason);
  return reason.has_value();
}

Words classify(const std::string& name, const Words& more, int threads = 1) {
  return classify_words(name, more + Words{"threads=" + std::to_string(threads)});
}

void check_same_run(const Workplace& place, const std::string& name, const std::string& unbroken) {
  check_same_weights(place, name, unbroken);
  check_same_metrics(place, name, unbroken);
  for (const auto& file : std::filesystem::directory_iterator(place / "runs" / name))
    CHECK(file.path().extension() != ".work");
}

/// Waits until the job has saved unfinished work whose file's name begins so. False: it ended before.
bool wait_for_work(Process& job, const Workplace& place, const std::string& run, const std::string& begin) {
  for (;;) {
    std::error_code none;
    for (std::filesystem::directory_iterator file(place / "runs" / run, none), end; !none && file != end;
         file.increment(none))
      if (file->path().filename().string().rfind(begin, 0) == 0 && file->path().extension() == ".work") return true;
    if (job.ended()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST_CASE("linear classifiers: any number of processes and threads trains the same weights") {
  if (ranks_are_unavailable()) return;
  const std::vector<LinearJob> jobs{
      {"two classes", linear_rows(300, 2), {}},
      {"three classes, validation", linear_rows(300, 3), {"data.valid_fraction=0.2", "train.monitor=macro-f1"}},
      {"labels", linear_rows(300, 4, true), {"data.multi_label=true"}},
      {"AdaGrad over rows that are made again", linear_rows(100'000, 12), {"train.memory=1", "model.buckets=4096"}},
  };
  for (const LinearJob& job : jobs) {
    INFO(job.name);
    const Workplace place;
    place.write("train.tsv", job.train);
    place.write("test.tsv", linear_rows(30, 2));
    succeed(place, classify("one", job.more));
    struct {
      int ranks, threads;
    } const sizes[] = {{2, 2}, {3, 1}};
    for (const auto& [ranks, threads] : sizes) {
      INFO(ranks, " ranks of ", threads, " threads");
      const std::string name = "ranks-" + std::to_string(ranks);
      const Outcome outcome = run(place, mpirun(ranks, classify(name, job.more, threads)));
      INFO(outcome.err);
      CHECK(outcome.code == 0);
      CHECK(contains(outcome.err, std::to_string(ranks) + " ranks by "));
      check_same_run(place, name, "one");
    }
    const Outcome again = run(place, mpirun(2, classify("ranks-3", job.more)));
    CHECK(again.code == 0);
    CHECK(contains(again.err, "nothing to do"));
    const Outcome replayed = run(place, mpirun(2, {"verify", "--replay", "runs/one"}));
    INFO(replayed.err);
    CHECK(replayed.code == 0);
    CHECK(contains(replayed.out, "the same"));
  }
}

TEST_CASE("linear classifiers: a rank that is killed, then a signal to one rank: the same weights afterwards") {
  if (ranks_are_unavailable()) return;
  const std::vector<LinearJob> jobs{
      {"folds", linear_rows(8'000, 8), {}},
      {"AdaGrad", linear_rows(100'000, 12), {"train.memory=1", "model.buckets=4096"}},
  };
  for (const LinearJob& job : jobs) {
    INFO(job.name);
    const Workplace place;
    place.write("train.tsv", job.train);
    place.write("test.tsv", linear_rows(30, 2));
    succeed(place, classify("one", job.more));
    setenv("CAPSTAN_WORK_SECONDS", "0", 1);
    {
      Process process(place, mpirun(3, classify("broken", job.more)));
      REQUIRE(wait_for_work(process, place, "broken", job.name));
      const std::vector<pid_t> processes = processes_of(process);
      REQUIRE(processes.size() == 3);
      kill(processes[1], SIGKILL);
      const Outcome outcome = process.wait(std::chrono::seconds(60));
      INFO(outcome.err);
      CHECK(outcome.code > 0);
    }
    {
      Process process(place, mpirun(2, classify("broken", job.more)));
      std::vector<pid_t> processes;
      while (!process.ended() && (processes = processes_of(process)).size() < 2)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      REQUIRE(processes.size() == 2);
      kill(processes[1], SIGTERM);
      const auto start = std::chrono::steady_clock::now();
      const Outcome outcome = process.wait(std::chrono::seconds(60));
      INFO(outcome.err);
      CHECK(outcome.code == 75);
      CHECK(contains(outcome.err, "interrupted by SIGTERM"));
      CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(3));
    }
    unsetenv("CAPSTAN_WORK_SECONDS");
    CHECK(run(place, mpirun(3, classify("broken", job.more))).code == 0);
    check_same_run(place, "broken", "one");
  }
}

TEST_CASE("linear classifiers: several processes start from a classifier as one does") {
  if (ranks_are_unavailable()) return;
  const Workplace place;
  place.write("train.tsv", linear_rows(300, 3));
  place.write("test.tsv", linear_rows(30, 2));
  succeed(place, classify("base", {}));
  place.write("train.tsv", linear_rows(40, 3));
  const Words from{"train.init_from=runs/base"};
  succeed(place, classify("one", from));
  const Outcome outcome = run(place, mpirun(2, classify("two", from)));
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.err, "starts from"));
  check_same_run(place, "two", "one");
}

}  // namespace
}  // namespace capstan::testing
