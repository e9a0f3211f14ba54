#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/machine/pool.hpp"
#include "data/batches/batcher.hpp"
#include "tests/support/threads.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/support.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

double worst_difference(const std::vector<real>& a, const std::vector<real>& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, static_cast<double>(std::abs(a[i] - b[i])));
  return worst;
}

/// Weights after `steps` steps of plain gradient descent, which shows errors of scale that AdamW would hide.
std::vector<real> train_weights(int64_t rows, int64_t count, int64_t accumulate, int64_t micro_batch_tokens,
                                int64_t steps) {
  NewRun setup;
  setup.data.rows = rows;
  setup.data.count = count;
  TrainConfig config = quiet_config(steps);
  config.optimizer = SgdConfig{};
  config.schedule.shape = ScheduleShape::constant;
  config.accumulate = accumulate;
  config.micro_batch_tokens = micro_batch_tokens;
  train(setup.inputs, config);
  return setup.weights();
}

}  // namespace

TEST_CASE_FIXTURE(OneRun, "training learns, and says why it ended") {
  setup.task.dropout = false;
  TrainConfig config = quiet_config(200);
  const double before = evaluate(setup.task, setup.held_out).loss();
  const TrainResult result = train(setup.inputs, config);
  CHECK_FALSE(result.interrupted);
  CHECK(result.reason == "all 200 steps are done");
  CHECK(evaluate(setup.task, setup.held_out).loss() < 0.1 * before);
  check_contains(read_text(setup / "run/train.log"),
                 {"finished at step 200: all 200 steps are done", "new best",
                  "schedule: cosine from learning rate 0.05\n", "schedule: end reached"});
}

TEST_CASE("accumulated batches are one big batch; micro-batches change nothing") {
  // 4 batches of 6 rows hold the same examples as 2 of 12 and 1 of 24.
  const auto whole = train_weights(24, 1, 1, 0, 5);
  CHECK(worst_difference(train_weights(6, 4, 4, 0, 5), whole) < 1e-6);
  CHECK(worst_difference(train_weights(12, 2, 2, 0, 5), whole) < 1e-6);
  for (const int64_t tokens : {1, 5, 17, 60, 119})
    CHECK(worst_difference(train_weights(24, 1, 1, tokens, 5), whole) < 1e-6);
  CHECK(worst_difference(train_weights(6, 4, 1, 0, 5), whole) > 1e-3);  // the control: other updates
}

TEST_CASE("a step never crosses the end of an epoch") {
  NewRun setup;  // 7 batches per epoch
  TrainConfig config = quiet_config();
  config.epochs = 2;
  config.accumulate = 3;
  const TrainResult result = train(setup.inputs, config);
  CHECK(result.state.step == 6);  // 3 + 3 + 1 batches, twice
  CHECK(result.state.epoch == 2);
  CHECK(result.state.batch == 0);
  CHECK(result.reason == "all 2 epochs are done");
}

TEST_CASE("rows are split evenly and completely") {
  DrawnBatches data;
  data.rows = 7;
  const Batch batch = data.batch(0, 0);
  for (const int64_t tokens : {0, 1, 5, 10, 16, 34, 35, 1000}) {
    int64_t row = 0;
    for (const Batch& piece : split_rows(batch, tokens)) {
      CHECK((tokens == 0 || piece.tokens.dim(0) == 1 || piece.tokens.size() <= tokens));
      for (int64_t i = 0; i < piece.tokens.dim(0); ++i, ++row) CHECK(piece.examples[i] == batch.examples[row]);
    }
    CHECK(row == 7);
  }
}

TEST_CASE_FIXTURE(OneRun, "early stopping counts evaluations without a new best") {
  TrainConfig config = quiet_config(1000);
  config.valid_every = 1;
  config.patience = 3;
  config.lr = 1e-30;  // nothing changes: after the first evaluation nothing is a new best
  const TrainResult result = train(setup.inputs, config);
  CHECK(result.reason == "no better validation loss in 3 evaluations");
  CHECK(result.state.step == 4);
  CHECK(result.state.best_step == 1);
  CHECK(checkpoint_name(setup / "run/checkpoints/best") == "step-1");
  CHECK(checkpoint_name(setup / "run/checkpoints/last") == "step-4");

  // The same again has nothing to do; more patience goes on.
  const std::string files = read_text(setup / "run/metrics.jsonl");
  CHECK(train(setup.inputs, config).state.step == 4);
  CHECK(read_text(setup / "run/metrics.jsonl") == files);
  CHECK(contains(read_text(setup / "run/train.log"), "nothing to do: this run is finished at step 4"));
  config.patience = 5;
  CHECK(train(setup.inputs, config).state.step == 6);
}

TEST_CASE_FIXTURE(OneRun, "early stopping counts from the last new best") {
  setup.task.dropout = false;
  std::atomic<int64_t> batches{0};  // two of an evaluation
  setup.task.damage = [&](const Context& context) {
    const int64_t evaluation = context.training ? 0 : batches++ / 2;
    return evaluation == 0 ? 1 : evaluation == 2 ? 1e-3 : 1e3;
  };
  TrainConfig config = quiet_config(1000);
  config.valid_every = 1;
  config.patience = 3;
  const TrainResult result = train(setup.inputs, config);
  CHECK(result.state.best_step == 3);
  CHECK(result.state.step == 6);
}

TEST_CASE("the best checkpoint is that of the best loss or of the best accuracy, as asked") {
  for (const std::string monitor : {"loss", "accuracy"}) {
    NewRun setup;
    TrainConfig config = quiet_config(30);
    config.valid_every = 1;
    config.lr = 0.2;  // so that both go up and down
    config.monitor = monitor;
    const TrainResult first = train(setup.inputs, config);
    config.steps = 40;  // what was best so far is remembered
    const TrainResult result = train(setup.inputs, config);
    int64_t best_step = 0, min_loss_step = 0;
    double best = -1e9, min_loss = 1e9, loss = 0, accuracy = 0;
    for (const nlohmann::json& line : metrics_in(setup / "run")) {
      if (line.at("event") != "valid") continue;
      const double value = monitor == "loss" ? -line.at("loss").get<double>() : line.at("accuracy").get<double>();
      if (line.at("loss").get<double>() < min_loss) {
        min_loss = line.at("loss").get<double>();
        min_loss_step = line.at("step").get<int64_t>();
      }
      CHECK(line.at("best").get<bool>() == (value > best));
      if (value <= best) continue;
      best = value;
      best_step = line.at("step").get<int64_t>();
      loss = line.at("loss").get<double>();
      accuracy = line.at("accuracy").get<double>();
    }
    CHECK(result.state.best_step == best_step);
    CHECK(result.state.best.at("loss") == loss);
    CHECK(result.state.best.at("accuracy") == accuracy);
    CHECK((best_step == min_loss_step) == (monitor == "loss"));  // or the test would say nothing
    CHECK(contains(read_text(setup / "run/train.log"),
                   monitor == "loss" ? "best validation loss " : "best validation accuracy "));
  }
}

TEST_CASE_FIXTURE(OneRun, "metrics hold what was trained on") {
  TrainConfig config = quiet_config(7);
  train(setup.inputs, config);
  std::vector<std::string> events;
  for (const auto& line : metrics_in(setup / "run"))
    events.push_back(line.at("event").get<std::string>() + " " + std::to_string(line.at("step").get<int>()));
  CHECK(events == std::vector<std::string>{"train 1", "train 2", "valid 3", "train 4", "train 6", "valid 6", "valid 7",
                                           "train 7"});
}

TEST_CASE("the steps after the last logged one are recorded, too, and a resumed run logs them once") {
  const TemporaryFolder folder;
  TrainConfig config = quiet_config(8);
  config.schedule.shape = ScheduleShape::constant;
  config.log_every = 5;
  Setup whole(folder / "whole");
  train(whole.inputs, config);
  Setup broken(folder / "broken");
  broken.task.before_loss = [&](const Context& context) {
    if (context.training && context.step == 6) send_signal(SIGTERM);
  };
  REQUIRE(train(broken.inputs, config).interrupted);
  const auto last = [](const std::filesystem::path& run) { return metrics_in(run).back(); };
  CHECK(last(folder / "broken").at("event") == "train");
  CHECK(last(folder / "broken").at("step") == 7);
  CHECK(contains(read_text(folder / "broken/train.log"), "Step 7/8"));
  broken.task.before_loss = nullptr;
  train(broken.inputs, config);
  const auto a = metrics_in(folder / "whole"), b = metrics_in(folder / "broken");
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].at("event") == b[i].at("event"));
    CHECK(a[i].at("step") == b[i].at("step"));
    CHECK(a[i].at("loss") == b[i].at("loss"));
  }
  CHECK(last(folder / "whole").at("event") == "train");
  CHECK(last(folder / "whole").at("step") == 8);
  // Where the run goes on, the line of a part of a window gives way to that of the whole window.
  config.steps = 10;
  train(whole.inputs, config);
  int64_t lines = 0;
  for (const auto& line : metrics_in(folder / "whole")) lines += line.at("step") == 8 ? 1 : 0;
  CHECK(lines == 1);  // of validation
}

TEST_CASE("a signal saves and stops; the same call goes on") {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    NewRun setup;
    TrainConfig config = quiet_config(10);
    setup.task.before_loss = [&](const Context& context) {
      if (context.training && context.step == 4) send_signal(signal);
    };
    const TrainResult first = train(setup.inputs, config);
    CHECK(first.interrupted);
    CHECK(first.state.step == 5);
    CHECK(contains(first.reason, "interrupted by SIG"));
    CHECK(checkpoint_name(setup / "run/checkpoints/last") == "step-5");
    setup.task.before_loss = nullptr;
    const TrainResult second = train(setup.inputs, config);
    CHECK_FALSE(second.interrupted);
    CHECK(second.state.step == 10);
  }
}

TEST_CASE("a step that goes on after a signal is undone, and the run has the weights of an unbroken one") {
  TrainConfig config = quiet_config(9);
  config.accumulate = 3;
  const TemporaryFolder folder;
  for (const int64_t lanes : {1, 2}) {
    INFO(lanes, " lanes");
    config.lanes = lanes;
    Setup whole(folder / fmt::format("whole-{}", lanes));
    train(whole.inputs, config);
    Setup broken(folder / std::to_string(lanes));
    std::atomic<bool> sent{false};
    broken.task.before_loss = [&](const Context& context) {
      if (!context.training || context.step != 5) return;
      if (!sent.exchange(true)) send_signal(SIGTERM);
      compute_for(30);
    };
    const Stopwatch watch;
    const TrainResult first = train(broken.inputs, config);
    CHECK(watch.seconds() < 10);
    CHECK(first.interrupted);
    CHECK(first.state.step == 5);
    broken.task.before_loss = nullptr;
    CHECK(train(broken.inputs, config).state.step == 9);
    for (const char* const file : {"model.safetensors", "optimizer.safetensors"}) {
      const auto of = [&](const Setup& run) {
        return read_text(in_run(run.inputs.folder / "checkpoints/last") / file);
      };
      CHECK_MESSAGE((of(broken) == of(whole)), file);
    }
  }
}

TEST_CASE("a second SIGINT ends the process at once, and what was saved is whole") {
  const TemporaryFolder folder;
  const Threads threads_used(1);  // the child inherits no other threads
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    Setup setup(folder / "run");
    TrainConfig config = quiet_config(10);
    config.save_every = 6;
    setup.task.before_loss = [&](const Context& context) {
      if (!context.training || context.step != 6) return;
      send_signal(SIGINT);
      kill(getpid(), SIGINT);
      for (;;) pause();
    };
    train(setup.inputs, config);
    _exit(4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
  CHECK(Checkpoints(folder / "run/checkpoints").last() == folder / "run/checkpoints/step-6");
}

TEST_CASE_FIXTURE(OneRun, "a time limit ends the run") {
  TrainConfig config = quiet_config();
  config.schedule.shape = ScheduleShape::constant;
  config.max_minutes = 1e-3;
  const TrainResult result = train(setup.inputs, config);
  CHECK(contains(result.reason, "the time limit of 0.001 minutes"));
  CHECK(result.state.step > 0);
  CHECK(train(setup.inputs, config).state.step == result.state.step);
}

TEST_CASE_FIXTURE(OneRun, "a run folder belongs to one process") {
  std::filesystem::create_directories(setup / "run");
  const int lock = ::open((setup / "run/.lock").c_str(), O_RDWR | O_CREAT, 0666);
  REQUIRE(::flock(lock, LOCK_EX) == 0);
  TrainConfig config = quiet_config(2);
  CHECK(contains(message_of([&] { train(setup.inputs, config); }), "another process"));
  ::close(lock);
  CHECK(train(setup.inputs, config).state.step == 2);
}

TEST_CASE_FIXTURE(OneRun, "no data, or no validation data for early stopping, is refused") {
  TrainConfig config = quiet_config(2);
  setup.data.count = 0;
  CHECK(contains(message_of([&] { train(setup.inputs, config); }), "does not fill a single batch"));
  setup.data.count = 3;
  setup.inputs.valid = nullptr;
  CHECK(train(setup.inputs, config).state.step == 2);
  config.patience = 1;
  CHECK(contains(message_of([&] { train(setup.inputs, config); }), "train.patience"));
}

TEST_CASE("after the first steps and the first evaluation the pool misses nothing, in later evaluations neither") {
  const Threads threads_used(1);  // how many blocks of a size two lanes hold at a time depends on when they meet
  NewRun setup;
  TrainConfig config = quiet_config(410);
  config.valid_every = 10;
  config.save_every = 0;
  std::vector<uint64_t> misses;
  setup.task.before_loss = [&](const Context& context) {
    if (context.training) misses.push_back(pool::stats().misses);
  };
  train(setup.inputs, config);
  // A miss per evaluation would be 39 more. Batches that are prepared in advance may take some, if that thread was late
  // at first.
  CHECK(misses.back() < misses.at(10) + 39);
}
