// Training by several processes, started by mpirun.
#include "tests/cli/support/ranks.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <map>

#include <thread>

#include "tests/cli/support/interruption.hpp"

namespace capstan::testing {
namespace {

/// Enough for eight ranks: lanes, and what lanes must not change.
const std::vector<Training>& rank_trainings() {
  static const std::vector<Training> list = {
      {"language model",
       "lm.yaml",
       {"train.lanes=8", "train.batch_size=9", "train.accumulate=2", "train.micro_batch_tokens=64",
        "train.precision=bf16", "model.ngram_embedding.orders=[2]", "model.ngram_embedding.buckets=300",
        "train.steps=10", "train.valid_every=5", "train.save_every=4"}},
      {"classifier",
       "classifier.yaml",
       {"train.lanes=8", "train.batch_size=9", "train.optimizer.type=muon", "model.recompute=true",
        "model.ngrams.orders=[1,2]", "model.ngrams.buckets=500", "model.ngrams.width=8", "model.ngrams.dropout=0.1",
        "train.steps=10", "train.valid_every=5", "train.save_every=4"}},
  };
  return list;
}

Words with_threads(const Words& command, int threads) { return command + ("threads=" + std::to_string(threads)); }

/// Waits until the job's run has come to a step, and returns the job's processes.
std::vector<pid_t> wait_for_processes(Process& job, const Workplace& place, const std::string& name, int64_t step,
                                      size_t count) {
  REQUIRE(wait_for_step(job, place, name, step));
  std::vector<pid_t> processes = processes_of(job);
  REQUIRE(processes.size() == count);
  return processes;
}

bool unavailable() {
  const std::optional<std::string> reason = no_mpi();
  if (reason) MESSAGE("skipped: " << *reason);
  return reason.has_value();
}

}  // namespace

TEST_CASE("any number of processes and threads trains the same weights") {
  if (unavailable()) return;
  setenv("CAPSTAN_BF16", "emulate", 1);
  for (const Training& training : rank_trainings()) {
    INFO(training.name);
    const SamplePlace place;
    REQUIRE(run(place, with_threads(train_command(training, "one"), 1)).code == 0);
    struct {
      int ranks, threads;
    } const sizes[] = {{2, 2}, {3, 1}};
    for (const auto& [ranks, threads] : sizes) {
      INFO(ranks, " ranks of ", threads, " threads");
      const std::string name = "ranks-" + std::to_string(ranks);
      const Outcome outcome = run(place, mpirun(ranks, with_threads(train_command(training, name), threads)));
      INFO(outcome.err);
      CHECK(outcome.code == 0);
      check_same_weights(place, name, "one");
      check_same_metrics(place, name, "one");
    }
  }
  unsetenv("CAPSTAN_BF16");
}

TEST_CASE("a rank that is killed ends the job; any other number of ranks goes on") {
  if (unavailable()) return;
  const SamplePlace place;
  Training training = rank_trainings().back();
  training.overrides = training.overrides + "train.steps=60 train.log_every=1 train.schedule.shape=constant";
  REQUIRE(run(place, train_command(training, "one")).code == 0);
  {
    Process job(place, mpirun(3, train_command(training, "broken")));
    const std::vector<pid_t> processes = wait_for_processes(job, place, "broken", 8, 3);
    kill(processes[1], SIGKILL);
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = job.wait(std::chrono::seconds(60));
    INFO(outcome.err);
    CHECK(outcome.code > 0);
    CHECK(contains(outcome.err, "rank 1"));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
  }
  {
    Process job(place, mpirun(2, train_command(training, "broken")));
    const std::vector<pid_t> processes = wait_for_processes(job, place, "broken", 20, 2);
    kill(processes[1], SIGTERM);  // a signal to one stops both ranks
    const Outcome outcome = job.wait(std::chrono::seconds(60));
    INFO(outcome.err);
    CHECK(outcome.code == 75);
    CHECK(contains(outcome.err, "interrupted by SIGTERM at step"));
  }
  CHECK(run(place, train_command(training, "broken")).code == 0);
  check_same_weights(place, "broken", "one");
}

TEST_CASE("a rank that is stopped is named within the time-out, in steps, saves and evaluations") {
  if (unavailable()) return;
  const SamplePlace place;
  Training training = rank_trainings().back();
  training.overrides = training.overrides + "train.steps=400 train.log_every=1 train.schedule.shape=constant";
  const std::map<std::string, Words> phases = {
      {"steps", "train.save_every=0 train.valid_every=0"},
      {"saves", "train.save_every=1 train.valid_every=0 model.ngrams.buckets=300000"},
      {"evaluations", "train.save_every=0 train.valid_every=1 data.valid_fraction=0.9"}};
  for (const auto& [phase, overrides] : phases) {
    INFO(phase);
    Process job(place, mpirun(3, train_command(training, phase, overrides) + "--rank-timeout 3"));
    const std::vector<pid_t> processes = wait_for_processes(job, place, phase, 3, 3);
    kill(processes[1], SIGSTOP);
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = job.wait(std::chrono::seconds(30));
    const auto took = std::chrono::steady_clock::now() - start;
    kill(processes[1], SIGKILL);
    INFO(outcome.err);
    CHECK(outcome.code > 0);
    CHECK(contains(outcome.err, "no sign of life from rank 1"));
    CHECK(took < std::chrono::seconds(8));
  }
}

TEST_CASE("a job that is stopped as a whole for longer than the time-out goes on") {
  if (unavailable()) return;
  const SamplePlace place;
  Training training = rank_trainings().back();
  const Words endless =
      "train.steps=100000 train.log_every=1 train.save_every=0 train.valid_every=0 train.schedule.shape=constant";
  Process job(place, mpirun(3, train_command(training, "stopped", endless) + "--rank-timeout 4"));
  const std::vector<pid_t> processes = wait_for_processes(job, place, "stopped", 3, 3);
  for (const pid_t process : processes) kill(process, SIGSTOP);
  const int64_t before = steps_done(place, "stopped");
  std::this_thread::sleep_for(std::chrono::milliseconds(4500));
  kill(processes[0], SIGCONT);
  kill(processes[2], SIGCONT);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // the others wait for this one
  kill(processes[1], SIGCONT);
  CHECK(wait_for_step(job, place, "stopped", before + 3));
  kill(processes[1], SIGTERM);
  const Outcome outcome = job.wait(std::chrono::seconds(30));
  INFO(outcome.err);
  CHECK(outcome.code == 75);
}

TEST_CASE("ranks that do not fit together are refused, both by name") {
  if (unavailable()) return;
  const SamplePlace place;
  place.write("other/text/a.txt", "another text altogether\n" + std::string(4000, 'x') + place.read("text/a.txt"));
  copy_files(place / "lm.yaml", place / "other/lm.yaml");
  copy_files(program_path(), place / "capstan");
  place.write("capstan", place.read("capstan") + " ");
  const std::string folder = "folder=" + (place / "runs").string();
  const Words train{program_path(), "train", "--config", "lm.yaml", "--set", "train.lanes=4", folder};
  const auto with = [&](const Words& front, const Words& back) { return front + train + back; };
  std::vector<std::string> other_program = train;
  other_program.front() = (place / "capstan").string();
  struct Row {
    std::string name;
    std::vector<std::string> second;
    Says says;
  };
  setenv("CAPSTAN_MPI_PLUGIN", (fs::path(program_path()).parent_path() / "libcapstan_mpi.so").c_str(), 0);
  const std::vector<Row> rows{
      {"another configuration", with({}, {"train.lr=0.5"}), "rank 1 ( ... has train.lr 0.5, rank 0 ("},
      {"another program", other_program, "different programs ... rank 1 ( ... rank 0 ("},
      {"other kernels", with({"/usr/bin/env", "OPENBLAS_CORETYPE=Prescott"}, {}),
       "different kernels ... BLAS core Prescott ... rank 1 ( ... rank 0 ( ... --allow-mixed-kernels"},
      {"other data", with({"/bin/sh", "-c", "cd other && exec \"$@\"", "sh"}, {}),
       "different data ... rank 1 ( ... fingerprint ... rank 0 ( ... same files"},
      {"too few lanes", with({}, {"train.lanes=1"}), "train.lanes 1"},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const Outcome outcome = run(place, mpirun_each({train, row.second}));
    INFO(outcome.err);
    CHECK(outcome.code == 1);
    check_contains(outcome.err, row.says);
    CHECK_FALSE(fs::exists(place / "runs/lm/config.yaml"));
  }
  const Outcome lanes = run(place, mpirun(2, {"train", "--config", "lm.yaml", "--set", "train.lanes=1"}));
  CHECK(lanes.code == 2);
  CHECK(contains(lanes.err, "Set train.lanes to 2"));
  std::vector<std::string> mixed = with({"/usr/bin/env", "OPENBLAS_CORETYPE=Prescott"}, {"--allow-mixed-kernels"}),
                           first = with({}, {"--allow-mixed-kernels"});
  const Outcome outcome = run(place, mpirun_each({first, mixed}));
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.err, "warning"));
}

TEST_CASE("commands that do not share out their work refuse to run as several processes") {
  const Workplace place;
  for (const char* const variable : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE"}) {
    setenv(variable, "3", 1);
    for (const char* const command : {"eval runs/lm", "predict runs/lm", "sweep --config lm.yaml",
                                      "score runs/lm text/a.txt", "generate runs/lm", "embed runs/lm text/a.txt"})
      check_refused(place, command, command,
                    fmt::format("does not share out its work: start it once, not as 3 processes ({})", variable), 2);
    unsetenv(variable);
  }
}

TEST_CASE("a linear classifier refuses to be trained by several processes") {
  if (unavailable()) return;
  const Workplace place;
  place.write("train.tsv", "on\tgood day\noff\tbad day\non\tgood\noff\tbad\n");
  place.write("test.tsv", "on\tgood\n");
  succeed(place, classify_words("one", {}));
  for (const Words& command : {classify_words("two", {}), Words{"verify", "--replay", "runs/one"}}) {
    const Outcome outcome = run(place, mpirun(2, command));
    INFO(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(
        contains(outcome.err, "a linear-classifier is trained on the threads of one process: start it once, not as 2"));
  }
  CHECK_FALSE(fs::exists(place / "runs/two"));
}

TEST_CASE("a plugin that is cut short anywhere is refused by name") {
  if (unavailable()) return;
  const SamplePlace place;
  const fs::path plugin = fs::path(program_path()).parent_path() / "libcapstan_mpi.so";
  const auto size = fs::file_size(plugin);
  for (const auto bytes : {uintmax_t{0}, uintmax_t{40}, uintmax_t{4096}, size / 2, size - 1}) {
    INFO(bytes);
    fs::copy_file(plugin, place / "cut.so", fs::copy_options::overwrite_existing);
    fs::resize_file(place / "cut.so", bytes);
    const Outcome outcome =
        run_shell(place, "OMPI_COMM_WORLD_SIZE=2 CAPSTAN_MPI_PLUGIN=./cut.so \"$capstan\" train --config lm.yaml");
    CHECK(outcome.code == 1);
    CHECK(contains(outcome.err, "cut.so: the file is cut short"));
  }
}

TEST_CASE_FIXTURE(Samples, "a launcher whose MPI is not the plugin's is refused") {
  setenv("PMI_SIZE", "4", 1);
  const Outcome outcome = run(place, "train --config lm.yaml");
  unsetenv("PMI_SIZE");
  INFO(outcome.err);
  CHECK(outcome.code == 1);
  CHECK(contains(outcome.err, no_mpi() ? "its plugin cannot be loaded" : "PMI_SIZE"));
}

}  // namespace capstan::testing
