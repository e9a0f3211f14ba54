// `sweep:` in a configuration: its combinations, their names, and what is refused before anything runs.
#include "run/training/sweep.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "core/base/error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/texts.hpp"

using namespace capstan;

namespace {

const std::string base = R"(name: rates
data: {type: text, train: [text]}
model: {type: language-model, width: 16, layers: [{mixer: attention}]}
train: {steps: 6}
)";

/// The options for a file with this text and these overrides; the file goes away with it.
struct Options : TemporaryFolder {
  explicit Options(const std::string& text, const std::vector<std::string>& overrides = {})
      : options{{write("sweep.yaml", text)}, overrides} {}
  ConfigOptions options;
};

std::vector<std::string> names(const Sweep& sweep) {
  std::vector<std::string> all;
  for (const RunConfig& run : sweep.runs) all.push_back(run.name);
  return all;
}

/// What load_sweep says.
std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const Options file(text, overrides);
  return message_of<ConfigError>([&] { load_sweep(file.options); });
}

TEST_CASE("every combination once, the last key fastest, in folders named by the values") {
  const Options file(base + "sweep: {train.lr: [1e-3, 3e-3], seed: [1, 2, 3]}\n");
  const Sweep sweep = load_sweep(file.options);
  CHECK(sweep.folder == std::filesystem::path("runs/rates"));
  CHECK(names(sweep) == std::vector<std::string>{"lr=1e-3,seed=1", "lr=1e-3,seed=2", "lr=1e-3,seed=3", "lr=3e-3,seed=1",
                                                 "lr=3e-3,seed=2", "lr=3e-3,seed=3"});
  for (size_t i = 0; i < sweep.runs.size(); ++i) {
    CHECK(sweep.runs[i].folder == "runs/rates");
    CHECK(sweep.runs[i].train.lr == (i < 3 ? 1e-3 : 3e-3));
    CHECK(sweep.runs[i].seed == static_cast<int64_t>(i % 3 + 1));
    CHECK(sweep.runs[i].train.steps == 6);
  }
}

TEST_CASE("values may be types, maps and lists; names stay fit for folders and unlike each other") {
  const Options file(
      base +
      "sweep:\n  model.layers.0.mixer: [attention, {type: flash, chunk: 64}, {type: flash, chunk: 128}]\n"
      "  data.include: [[\"*.cpp\"], [\"*.cpp \"], [\"a/b\"]]\n");
  const Sweep sweep = load_sweep(file.options);
  REQUIRE(sweep.runs.size() == 9);
  CHECK(names(sweep)[0] == "mixer=attention,include=.cpp");
  CHECK(names(sweep)[1] == "mixer=attention,include=.cpp-2");
  CHECK(names(sweep)[2] == "mixer=attention,include=a-b");
  CHECK(names(sweep)[3].find("mixer=type-flash-chunk-64") == 0);
  const auto& model = std::get<LanguageModelConfig>(sweep.runs[8].model);
  CHECK(std::get<FlashConfig>(model.layers[0].mixer).chunk == 128);
  for (const std::string& name : names(sweep)) CHECK(name.find('/') == std::string::npos);
}

TEST_CASE("maps of keys and overrides say the same as paths") {
  const Options file(base + "sweep: {train: {lr: [1e-3]}, seed: [1, 2, 3]}\n",
                     {"sweep.seed=[7]", "sweep.train.batch_size=[2, 4]"});
  CHECK(names(load_sweep(file.options)) ==
        std::vector<std::string>{"lr=1e-3,batch_size=2,seed=7", "lr=1e-3,batch_size=4,seed=7"});
  const Options dotted(base + "sweep: {train.lr: [1e-3]}\n", {"sweep.train.lr=[2e-3]"});
  CHECK(names(load_sweep(dotted.options)) == std::vector<std::string>{"lr=2e-3"});
}

TEST_CASE("what is wrong with a sweep is told at its place, before anything runs") {
  struct Case {
    std::string text;
    std::vector<std::string> says;
  };
  for (const Case& c : {
           Case{"sweep: 3\n", {":5:8: sweep: expected keys with lists of values"}},
           Case{"sweep: {}\n", {"sweep: expected keys with lists of values"}},
           Case{"sweep: {train.lr: 1e-3}\n", {":5:19: sweep.train.lr: expected a list of values, got 1e-3"}},
           Case{"sweep: {seed: []}\n", {"sweep.seed: expected at least one value"}},
           Case{"sweep: {seed: [1, 2, 1]}\n", {"sweep.seed: the value 1 is listed twice"}},
           Case{"sweep: {name: [a, b]}\n", {"sweep.name: cannot be swept"}},
           Case{"sweep: {train.lr: [1e-3], train: {lr: [2e-3]}}\n", {"sweep.train.lr: is given twice"}},
           Case{"sweep: {train.lrr: [1e-3]}\n", {"train.lrr: unknown key", "did you mean lr"}},
           Case{"sweep: {model.layers.3.repeat: [1]}\n", {"sweep.model.layers.3.repeat: there is no list element 3"}},
           Case{"sweep: {train.lr: [1e-3, fast, slow], seed: [1, 2]}\n",
                {":5:26: train.lr: expected a number", "\"fast\" (in lr=fast,seed=1)"}},
           Case{"sweep: {model.width: [16, 18]}\n", {"(in width=18)"}},
           Case{"", {"the key sweep is missing"}},
           Case{"seed: 1\nseed: 2\nsweep: {seed: [1, 2]}\n", {":6:1: seed: duplicate key"}},
       }) {
    INFO(c.text);
    check_contains(refusal(base + c.text), c.says);
  }
  std::string values = "1";
  for (int i = 2; i <= 40; ++i) values += ", " + std::to_string(i);
  CHECK(contains(refusal(base + "sweep: {seed: [" + values + "], train.batch_size: [" + values + "]}\n"),
                 "more than 1000"));
}

TEST_CASE("a single run's command says what a sweep is for") {
  const Options file(base + "sweep: {seed: [1, 2]}\n");
  CHECK(find_sweep(file.options));
  CHECK_THROWS_WITH_AS(load_run(file.options), doctest::Contains("train them with capstan sweep"), ConfigError);
  const Options single(base);
  CHECK_FALSE(find_sweep(single.options));
  CHECK(load_run(single.options).name == "rates");
}

}  // namespace
