// capstan slim: what it keeps, what it says, and what refuses its result.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/io/file.hpp"
#include "tests/cli/support/samples.hpp"
#include "tests/support/forged_checkpoint.hpp"

namespace capstan::testing {
namespace {

/// Texts of two classes with words that say which, and many that do not.
std::string reviews(int count, int first) {
  const char* const words[2][3] = {{"dull", "boring", "poor"}, {"fine", "superb", "lovely"}};
  std::string rows;
  for (int i = first; i < first + count; ++i)
    rows += fmt::format("{}\ta {} film of number {} and day {}\n", i % 2 == 0 ? "bad" : "good", words[i % 2][i / 2 % 3],
                        i * 7919 % 100003, i * 104729 % 1009);
  return rows;
}

void train_classifier(const Workplace& place) {
  place.write("train.tsv", reviews(600, 0));
  place.write("test.tsv", reviews(100, 600));
  succeed(place, classify_words("full", {}));
}

uint64_t bytes_of(const Workplace& place, const std::string& run) {
  return bytes_below((place / (run + "/checkpoints")).string());
}

}  // namespace

TEST_CASE("slim: a linear classifier of a tenth of the size predicts and evaluates; training refuses it") {
  const Workplace place;
  train_classifier(place);
  const auto before = place.content("runs/full");
  const Outcome said = succeed(place, "slim runs/full --output runs/slim --size 0.1");
  CHECK(contains(said.out, " n-grams"));
  CHECK(place.content("runs/full") == before);
  CHECK(bytes_of(place, "runs/slim") < bytes_of(place, "runs/full") / 10 + 4000);  // and the state
  const auto accuracy = [&](const char* run) {
    return number_of(succeed(place, {"eval", run, "--split", "test"}).out, "accuracy");
  };
  CHECK(accuracy("runs/slim") >= accuracy("runs/full") - 0.01);
  CHECK(succeed(place, "predict runs/slim test.tsv").out.size() > 100);
  CHECK(contains(succeed(place, "verify runs/slim").out, "for prediction alone (capstan slim)"));
  check_refused(place, "trained on", classify_words("slim", {}), "this run is slim ... train.init_from=runs/slim");
  check_refused(place, "slim", "slim runs/slim --output runs/x", "slim already");
  check_refused(place, "exists", "slim runs/full --output runs/slim", "is there already");
  check_refused(place, "no room", "slim runs/full --output runs/x --size 0.0001",
                "--size: no n-gram fits into ... give at least 0.", 2);
  CHECK(names_in_folder((place / "runs").string()) == Words{"full", "slim"});
}

TEST_CASE("slim: without --size, a fifth of the n-grams' bytes, and no data are read") {
  const Workplace place;
  train_classifier(place);
  fs::remove(place / "train.tsv");
  succeed(place, "slim runs/full --output runs/slim");
  CHECK(bytes_of(place, "runs/slim") < bytes_of(place, "runs/full") / 5 + 4000);
  CHECK(bytes_of(place, "runs/slim") > bytes_of(place, "runs/full") / 10);
}

TEST_CASE("slim: with --size 1 all n-grams stay, and every weight is within a sixteenth of what it was") {
  const Workplace place;
  train_classifier(place);
  succeed(place, "slim runs/full --output runs/slim --size 1");
  const std::vector<float> full = tensor_of(place, model_of("full", "best"), "linear.weight"),
                           slim = tensor_of(place, model_of("slim", "best"), "linear.weight");
  REQUIRE(full.size() == slim.size());
  const float largest = std::abs(*std::max_element(full.begin(), full.end()));
  for (size_t i = 0; i < full.size(); ++i)
    CHECK(std::abs(full[i] - slim[i]) <= std::max(std::abs(full[i]) / 16 * 1.0001F, largest / 1e5F));
}

TEST_CASE("slim: a classifier of as many classes as n-grams keeps its constants as they are") {
  const Workplace place;
  std::string rows;
  for (int i = 0; i < 160; ++i) rows += fmt::format("c{0}\tthe word{0} of text {1}\n", i % 16, i);
  place.write("train.tsv", rows);
  succeed(place, classify_words("full", "data.test=[] model.buckets=16"));
  succeed(place, "slim runs/full --output runs/slim --size 1");
  CHECK(tensor_of(place, model_of("slim", "best"), "linear.bias") ==
        tensor_of(place, model_of("full", "best"), "linear.bias"));
}

TEST_CASE("slim: a copy that would not be smaller is refused") {
  const Workplace place;
  place.write("train.tsv", reviews(40, 0));
  succeed(place, classify_words("tiny", "data.test=[] model.buckets=16"));
  check_refused(place, "not smaller", "slim runs/tiny --output runs/slim --size 1",
                "runs/tiny: a slim copy would not be smaller");
  CHECK(names_in_folder((place / "runs").string()) == Words{"tiny"});
}

TEST_CASE_FIXTURE(Trained, "slim: other models keep all weights, and their figures") {
  // Most rows of a table of n-grams are zeros, in no file.
  const Words table =
      "train --config classifier.yaml --set name=table model.ngrams.orders=[1,2] model.ngrams.buckets=300000 "
      "model.ngrams.width=8";
  succeed(place, table);
  succeed(place, table + "train.keep_optimizer=false");
  succeed(place, "slim runs/table --output slim-table");
  CHECK(bytes_of(place, "slim-table") < bytes_of(place, "runs/table"));
  const auto loss = [&](const char* run) { return number_of(succeed(place, {"eval", run}).out, "loss"); };
  CHECK(loss("slim-table") == doctest::Approx(loss("runs/table")).epsilon(0.01));
  succeed(place, "slim runs/lm --output slim-lm");
  CHECK(bytes_of(place, "slim-lm") < bytes_of(place, "runs/lm") / 4);
  CHECK(loss("slim-lm") == doctest::Approx(loss("runs/lm")).epsilon(0.01));
  check_refused(place, "more steps", "train --config lm.yaml --set folder=. name=slim-lm train.steps=9",
                "this run is slim");
  fs::remove_all(place / "text");
  CHECK(contains(succeed(place, "slim runs/lm --output blind-lm").err, "capstan generate blind-lm"));
}

TEST_CASE("slim: there is no copy of weights that are not finite") {
  const Workplace place;
  train_classifier(place);
  change_tensors(place / "runs/full/checkpoints/step-1/model.safetensors",
                 [](const std::string& name, std::vector<float>& values) {
                   if (name == "linear.bias") values[0] = NAN;
                 });
  check_refused(place, "nan", "slim runs/full --output runs/slim", "the model computes nan");
  CHECK(names_in_folder((place / "runs").string()) == Words{"full"});
}

TEST_CASE_FIXTURE(Trained, "slim: there is no copy of a model whose finite weights compute what is not finite") {
  succeed(place, "train --config classify --set name=linear data.train=[train.tsv]");
  const std::vector<std::pair<std::string, std::string>> rows{
      {"lm", "embed.weight"}, {"lm", "final_norm.gain"}, {"classifier", "embed.weight"}, {"linear", "linear.weight"}};
  for (const auto& [name, changed] : rows) {
    INFO(name, " ", changed);
    const fs::path file = place / ("runs/" + name + "/checkpoints/best/model.safetensors");
    const auto before = place.content("runs/" + name);
    change_tensors(file, [&, &changed = changed](const std::string& tensor, std::vector<float>& values) {
      if (tensor == changed) std::fill(values.begin(), values.end(), 3e38F);
    });
    check_refused(place, name, {"slim", "runs/" + name, "--output", "runs/slim"}, "the model computes");
    CHECK_FALSE(fs::exists(place / "runs/slim"));
    for (const auto& [path, content] : before) place.write(path, content);
  }
}

TEST_CASE_FIXTURE(Trained, "slim: metrics.jsonl that is not what the run recorded is not copied") {
  place.write("runs/lm/metrics.jsonl", "{\"event\":\"valid\",\"step\":6,\"loss\":0.1}\n");
  check_refused(place, "changed", "slim runs/lm --output runs/slim", "metrics.jsonl ... not what the checkpoint");
}

}  // namespace capstan::testing
