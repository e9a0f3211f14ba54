// A run of a linear classifier: solved for, evaluated, saved, and not begun again.
#include <doctest/doctest.h>

#include "tests/train/linear/linear_samples.hpp"
#include "tests/train/support.hpp"
#include "train/evaluation/classifier_evaluation.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/linear/train_linear.hpp"

namespace capstan::testing {
namespace {

struct LinearRun {
  Samples train{sample_texts(100)}, valid{sample_texts(40)};
  NgramRows rows{train.texts(), linear_config(), 2};
  ParamStore store;
  LinearClassifier classifier{Scope(store, 1), rows.config(), 2};
  bool validates = false;
  bool stopped = false;

  LinearRun() { store.finalize(); }
  TrainResult operator()(const std::filesystem::path& folder, const TrainConfig& config) {
    Communicator one_process;
    Session session({folder, {{"model", "m"}}, 1, {}, 1, validates}, config, one_process);
    Optimizer none(config.optimizer, store, {{0, store.flat_size()}});
    const RunParts parts{store, none, session.state()};
    session.resume(parts);
    session.record();
    if (stopped) send_signal(SIGTERM);
    LabelledTexts texts = valid.texts();
    return train_linear(session, classifier, rows, validates ? &texts : nullptr, parts);
  }
};

TEST_CASE("a linear run: one step that is all epochs, and nothing to do afterwards") {
  for (const int64_t epochs : {0, 1, 3}) {
    INFO(epochs, " epochs");
    const TemporaryFolder folder;
    LinearRun run;
    TrainConfig config = quiet_config();
    config.epochs = epochs;
    config.schedule.shape = ScheduleShape::constant;
    if (epochs == 0) config.max_minutes = 1;
    const RunState state = run(folder / "run", config).state;
    CHECK(state.step == 1);
    CHECK(state.epoch == std::max<int64_t>(epochs, 1));
    CHECK(state.tokens == run.train.examples.token_count());
    CHECK(state.best.count("loss") == 1);  // of held-out texts
    CHECK(contains(read_text(folder / "run/train.log"), "linear: 100 texts"));
    run(folder / "run", config);
    CHECK(contains(read_text(folder / "run/train.log"), "nothing to do"));
  }
}

TEST_CASE("a linear run: a signal before it is solved for saves nothing, validation texts are evaluated") {
  const TemporaryFolder folder;
  LinearRun run;
  run.validates = run.stopped = true;
  TrainConfig config = quiet_config();
  config.epochs = 1;
  CHECK(run(folder / "run", config).interrupted);
  CHECK_FALSE(std::filesystem::exists(folder / "run/checkpoints/last"));
  run.stopped = false;
  const TrainResult result = run(folder / "run", config);
  const auto found = evaluate_classifier(run.classifier, run.valid.texts());
  CHECK(result.state.best.at("loss") == found.total.loss());
  CHECK(found.total.targets == 40);
  CHECK(found.report->accuracy() == found.total.accuracy());
}

}  // namespace
}  // namespace capstan::testing
