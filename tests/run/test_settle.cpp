// What a configuration leaves open, chosen by settle() on a machine of known times, and taken from a run that was
// begun.
#include "run/training/settle.hpp"

#include <doctest/doctest.h>

#include "core/base/error.hpp"
#include "core/base/stop.hpp"
#include "core/io/log.hpp"
#include "core/products/gemm_backend.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/saved_run.hpp"
#include "run/training/train_run.hpp"
#include "run/yaml/config.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/texts.hpp"

namespace capstan {
namespace {

using Overrides = std::vector<std::string>;

/// A step takes five seconds, an evaluation one. Trials are counted.
class KnownMachine {
 public:
  KnownMachine() {
    machine.time_steps = [this](const RunConfig&, const DataSource&, double) {
      ++trials;
      return PilotTimes{5, 1, 0};
    };
    machine.time_precisions = [this](const RunConfig&, const DataSource&, int) {
      ++trials;
      return PrecisionTimes{1, 0.5};
    };
  }
  Machine machine;
  int trials = 0;
};

const std::string prose = "the tape turns a drum and wire runs out slow ";

class Data : public TemporaryFolder {
 public:
  Data() {
    write("text.txt", numbered_lines(200, {prose}));
    write("rows.csv", "sentiment,review\n" + numbered_lines(200, {"good,a fine day ", "bad,a sad night "}));
  }

  RunConfig language_model(const Overrides& more = {}) const {
    return config({"data.train=[" + path("text.txt") + "]", "data.sequence_length=32", "model.max_length=32",
                   "model.layers=[{mixer: aft-simple}]", "train.batch_size=4"},
                  more);
  }
  RunConfig classifier(const Overrides& more = {}) const {
    return config({"data={type: labelled, train: [" + path("rows.csv") + "]}", "train.epochs=1"}, more);
  }

 private:
  RunConfig config(Overrides all, const Overrides& more) const {
    all.insert(all.begin(), {"name=run", "folder=" + path("runs"), "train.progress=none"});
    all.insert(all.end(), more.begin(), more.end());
    return load_config<RunConfig>({}, all);
  }
};

Settled settled(const RunConfig& given, const Machine& machine) {
  Communicator one_process;
  return settle(given, {}, one_process, machine);
}

std::vector<std::string> differing_keys(const RunConfig& a, const RunConfig& b) {
  std::vector<std::string> keys;
  for (const ConfigDifference& key : diff_configs(a, b)) keys.push_back(key.path);
  return keys;
}

const Overrides planned{"train.minutes=1", "train.schedule.warmup_steps=100", "model.width=0", "model.dropout=null",
                        "train.precision=auto"};

TEST_CASE("settle: each key that is left open is chosen, with a line, and no other key is touched") {
  const Data data;
  KnownMachine known;
  struct Case {
    RunConfig given;
    std::vector<std::string> keys, lines;  // that change, and what the lines begin with
  };
  const std::string linear = "model={type: linear-classifier, words: null}";
  const Overrides steps{"train.steps=50"};
  const Case cases[] = {
      {data.language_model({"train.steps=50", "train.valid_every=0"}), {}, {}},
      {data.language_model(steps), {"train.valid_every"}, {"an evaluation every 50 steps"}},
      {data.language_model({"train.steps=50", "train.valid_every=0", "train.precision=auto"}),
       {"train.precision"},
       {"train.precision: auto is "}},
      {data.language_model(planned),
       {"model.dropout", "model.width", "train.precision", "train.schedule.warmup_steps", "train.steps",
        "train.valid_every"},
       {"train.precision: auto is ", "plan for 1 min: width "}},
      {data.classifier({linear}),
       {"data.header", "data.label_column", "data.text_columns.0", "model.buckets", "model.words"},
       {"", "model.words: [1, 2] of 180 texts"}},
      {data.classifier({linear, "train.precision=auto", "data.header=true", "data.label_column=sentiment",
                        "data.text_columns=[review]", "model.buckets=1024"}),
       {"model.words", "train.precision"},
       {"model.words: "}},
  };
  for (const Case& c : cases) {
    const Settled run = settled(c.given, known.machine);
    std::vector<std::string> keys = differing_keys(c.given, run.config);
    std::sort(keys.begin(), keys.end());
    CAPTURE(join(run.choices, " | "));
    CAPTURE(join(keys));
    if (bf16_obstacle().empty() || std::find(c.keys.begin(), c.keys.end(), "train.precision") == c.keys.end())
      CHECK(keys == c.keys);
    REQUIRE(run.choices.size() == c.lines.size());
    for (size_t i = 0; i < c.lines.size(); ++i) CHECK(starts_with(run.choices[i], c.lines[i]));
    CHECK_FALSE(std::filesystem::exists(data / "runs"));
    // What is settled has nothing left to choose.
    known.trials = 0;
    const Settled again = settled(run.config, known.machine);
    CHECK(differing_keys(run.config, again.config).empty());
    CHECK(again.choices.empty());
    CHECK(known.trials == 0);
  }
}

/// Begins the run, whose configuration is that of `run`: trains it or, without a checkpoint, writes its files only.
void begin(const Settled& run, bool has_checkpoint) {
  Communicator one_process;
  if (has_checkpoint) {
    train_run(run.config, {}, one_process);
    return;
  }
  const std::filesystem::path folder = folder_of(run.config);
  std::filesystem::create_directories(folder);
  write_run_files(folder, run.config, run.data->tokenizer(), run.data->classes());
}

TEST_CASE("settle: a run that was begun keeps what it chose by trial; with a checkpoint, it keeps all") {
  const Data data;
  for (const bool has_checkpoint : {false, true}) {
    CAPTURE(has_checkpoint);
    std::filesystem::remove_all(data / "runs");
    KnownMachine known, fast;
    fast.machine.time_steps = [&](const RunConfig&, const DataSource&, double) {
      ++fast.trials;
      return PilotTimes{1, 1, 0};
    };
    const RunConfig given = data.language_model(planned);
    const Settled first = settled(given, known.machine);
    begin(first, has_checkpoint);
    const Settled second = settled(given, fast.machine);
    CHECK(differing_keys(first.config, second.config).empty());
    CHECK(fast.trials == 0);
    CHECK(second.choices ==
          std::vector<std::string>{
              fmt::format("train.minutes: {} steps, as planned when the run was begun", first.config.train.steps)});
    CHECK_THROWS_WITH_AS(settled(data.language_model({"train.minutes=2", "model.width=0"}), known.machine),
                         doctest::Contains("was planned for 1 min: give --minutes 1 to resume it"), ConfigError);
    CHECK(settled(data.language_model({"train.steps=7"}), known.machine).config.train.steps == 7);
  }
  // Its configuration must be readable, or all would be chosen anew.
  const std::string config = (folder_of(data.language_model(planned)) / "config.yaml").string();
  std::ofstream(config) << "name: [";
  const auto refusal = [&] {
    return message_of<Error>([&] { settled(data.language_model(planned), KnownMachine().machine); });
  };
  CHECK(contains(refusal(), "put it back"));
  std::filesystem::remove(config);
  CHECK(contains(refusal(), "put it back"));
  // Of tables, a run without a checkpoint looks again: they may have been mended.
  std::filesystem::remove_all(data / "runs");
  const KnownMachine known;
  const RunConfig given = data.classifier({"model={type: linear-classifier, words: null}"});
  const auto texts_read = [&](bool has_checkpoint) {
    std::filesystem::remove_all(data / "runs");
    begin(settled(given, known.machine), has_checkpoint);
    RunConfig other = load_config<RunConfig>({(folder_of(given) / "config.yaml").string()}, {"data.header=false"});
    std::ofstream(folder_of(given) / "config.yaml") << to_yaml(other);
    return settled(given, known.machine).config;
  };
  CHECK(std::get<LabelledSourceConfig>(texts_read(false).data).header == true);
  CHECK_THROWS_WITH_AS(texts_read(true), doctest::Contains("sentiment"), Error);
}

TEST_CASE("settle: bf16 is chosen where a step takes nine tenths of the time or less") {
  if (!bf16_obstacle().empty()) {
    MESSAGE("skipped: this CPU has no instructions for bf16");
    return;
  }
  const Data data;
  for (const double seconds : {0.45, 0.46}) {
    KnownMachine known;
    known.machine.time_precisions = [&](const RunConfig&, const DataSource&, int) {
      return PrecisionTimes{0.5, seconds};
    };
    const Settled run =
        settled(data.language_model({"train.steps=5", "train.valid_every=0", "train.precision=auto"}), known.machine);
    const std::string chosen = seconds < 0.455 ? "bf16" : "float32";
    CHECK(enum_name(run.config.train.precision) == chosen);
    CHECK(run.choices == std::vector<std::string>{fmt::format("train.precision: auto is {}: a step takes 0.5 s in "
                                                              "float32 and {} s in bf16",
                                                              chosen, seconds)});
  }
}

TEST_CASE(
    "settle: a precision that is given is not that of the begun run, and none is trained in before it is chosen") {
  const Data data;
  const auto config = [&](const char* precision) {
    return data.language_model({"train.steps=5", std::string("train.precision=") + precision});
  };
  for (const char* const chosen : {"float32", "bf16"}) {
    const BegunRun begun{config(chosen), true};
    CHECK(with_choices_of(begun, config("auto")).train.precision == begun.config.train.precision);
    CHECK(with_choices_of(begun, config("float32")).train.precision == Precision::float32);
    CHECK(with_choices_of(begun, config("bf16")).train.precision == Precision::bf16);
  }
  CHECK_THROWS_WITH_AS(check_config(config("auto").train),
                       doctest::Contains("train.precision: auto has not been replaced yet: set float32 or bf16"),
                       ConfigError);
}

TEST_CASE("settle: a run is finished where what it was begun with has been reached") {
  const Data data;
  CHECK_FALSE(is_finished(data.language_model({"train.steps=7"})));
  const KnownMachine known;
  begin(settled(data.language_model({"train.steps=7"}), known.machine), false);
  CHECK_FALSE(is_finished(data.language_model({"train.steps=7"})));
}

TEST_CASE("settle: a signal while steps are on trial ends it, and says so") {
  const Data data;
  for (const Overrides& open : {planned, Overrides{"train.steps=50", "train.precision=auto"}}) {
    const StopSignals signals;
    KnownMachine known;
    known.machine.time_steps = [&](const RunConfig&, const DataSource&, double) -> PilotTimes {
      StopSignals::request(SIGTERM);
      throw Stopped();
    };
    known.machine.time_precisions = [&](const RunConfig&, const DataSource&, int) -> PrecisionTimes {
      StopSignals::request(SIGTERM);
      throw Stopped();
    };
    if (open != planned && !bf16_obstacle().empty()) continue;
    std::string log;
    set_log_sink([&](LogLevel, std::string_view line) { log += std::string(line) + "\n"; });
    CHECK_THROWS_AS(settled(data.language_model(open), known.machine), Stopped);
    set_log_sink({});
    CHECK(log == "interrupted by SIGTERM while steps were on trial; the same command goes on\n");
  }
}

TEST_CASE("settle: no step is on trial that the memory is too small for") {
  const Data data;
  KnownMachine known;
  known.machine.memory = {50'000'000, "the control group /small"};
  known.machine.taken = [] { return 49'990'000; };
  const auto message = [&](const Overrides& overrides) {
    return message_of<ConfigError>([&] { settled(data.language_model(overrides), known.machine); });
  };
  CHECK(contains(message(planned), "model: training needs about 7"));
  CHECK(contains(message(planned), "(74.0 MB for the program and the data"));
  CHECK(contains(message({"train.steps=5", "train.precision=auto"}), "the control group /small has 50.0 MB"));
  CHECK(known.trials == 0);
  // A plan takes sizes that leave memory to spare.
  data.write("text.txt", numbered_lines(6000, {prose}));
  known.machine.time_steps = [](const RunConfig&, const DataSource&, double) { return PilotTimes{1e-3, 0, 0}; };
  const auto width_within = [&](uint64_t bytes) {
    known.machine.memory.bytes = 50'000'000 + bytes;
    return model_of(settled(data.language_model(planned), known.machine).config).width;
  };
  known.machine.memory.bytes = 76'000'000;
  CHECK(contains(settled(data.language_model(planned), known.machine).choices.back(),
                 "no larger model leaves memory to spare of the control group /small"));
  CHECK(width_within(300'000'000) > width_within(26'000'000));
}

}  // namespace
}  // namespace capstan
