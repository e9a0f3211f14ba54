// Language models on generated associative recall: train, go on, evaluate, and what is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"
#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

constexpr const char* recall_yaml = R"(name: recall
data: {type: associative-recall, vocabulary: 20, length: 16, pairs: 2, train: 400, valid: 40, test: 50}
model:
  type: language-model
  width: 32
  max_length: 16
  positions: learned
  layers:
    - {mixer: {type: aft-local, window: 8, rank: 4}, feed_forward: {type: gelu, expansion: 2}}
train: {steps: 60, batch_size: 16, lr: 1e-2, valid_every: 30, log_every: 10, save_every: 30, progress: plain, keep_optimizer: true}
)";

/// Trains runs/recall in `place`.
Outcome train(const Workplace& place, const Words& more = {}) {
  place.write("recall.yaml", recall_yaml);
  const Words words = Words("train --config recall.yaml") + more;
  return run(place, words);
}

TEST_CASE("a small model trains on associative recall; loss and accuracy count the questions only") {
  const Workplace place;
  const Outcome outcome = train(place);
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  CHECK(indecency(outcome) == "");
  CHECK(contains(outcome.err, "train: 400 sequences of 16 tokens, 2 of them asked for"));
  double first = 0, last = 0, accuracy = 0;
  for (const std::string& line : lines_of(place.read("runs/recall/metrics.jsonl"))) {
    const nlohmann::json entry = parse_json(line);
    if (entry.at("event") == "valid") {
      CHECK(entry.at("targets") == 40 * 2);
      accuracy = entry.at("accuracy").get<double>();
      (first == 0 ? first : last) = entry.at("loss").get<double>();
    }
  }
  CHECK(last < first);
  CHECK(last < std::log(10.0) + 0.1);  // it has learnt at least which ten tokens are values
  CHECK(accuracy > 0.1);

  const Outcome eval = succeed(place, "eval runs/recall --split test");
  CHECK(number_of(eval.out, "targets") == 50 * 2);
  CHECK(number_of(eval.out, "loss") > 0);
  CHECK(number_of(eval.out, "perplexity") >= 1);
  CHECK(number_of(eval.out, "accuracy") >= 0);
  CHECK_FALSE(contains(eval.out, "bits_per_byte"));  // there are no bytes
  const Words generate{"generate", "runs/recall", "--prompt", "3 12 5 17 5", "--tokens", "3"};
  CHECK(contains(succeed(place, generate).out, "3 12 5 17 5 "));
}

TEST_CASE("a run on associative recall goes on where it ended, and gives what an unbroken one gives") {
  const Workplace place, other;
  REQUIRE(train(place).code == 0);
  REQUIRE(train(other, {"--set", "train.steps=30", "train.schedule.shape=constant"}).code == 0);
  REQUIRE(train(place, {"--set", "name=whole", "train.schedule.shape=constant"}).code == 0);
  REQUIRE(train(other, {"--set", "train.schedule.shape=constant"}).code == 0);
  CHECK(other.read("runs/recall/checkpoints/step-60/model.safetensors") ==
        place.read("runs/whole/checkpoints/step-60/model.safetensors"));
  const Outcome changed = train(other, {"--set", "data.pairs=3", "train.steps=90"});
  CHECK(changed.code != 0);
  CHECK(contains(changed.err, "data"));
}

TEST_CASE("associative recall refuses what contradicts itself, other models and comparisons of files") {
  const Workplace place;
  place.write("recall.yaml", recall_yaml);
  check_refused(place, "too many pairs", "train --config recall.yaml --set data.pairs=5", "data.pairs ... at least 20",
                2);
  check_refused(place, "longer than the model knows", "train --config recall.yaml --set data.length=18",
                "data.length ... 18 tokens ... 16 positions", 2);
  check_refused(place, "a classifier",
                {"train", "--config", "recall.yaml", "--set", "model={type: text-classifier, layers: [{}]}"},
                "data.type ... associative-recall has no labels", 2);
  REQUIRE(train(place).code == 0);
  check_refused(place, "gzip", "eval runs/recall --compare-gzip", "only text comes from files");
}

}  // namespace
}  // namespace capstan::testing
