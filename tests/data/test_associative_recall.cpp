#include <cmath>
#include <map>
#include <set>

#include "core/base/error.hpp"
#include "data/generated/associative_recall.hpp"
#include "data/tokenizers/blank_separated.hpp"
#include "support.hpp"

using namespace capstan;

namespace {

AssociativeRecallConfig small_config() {
  AssociativeRecallConfig config;
  config.vocabulary = 101;  // odd: the halves differ in size
  config.length = 40;
  config.pairs = 6;
  config.train = 50;
  config.valid = config.test = 20;
  return config;
}

/// What a sequence must be; returns the slots of the questions in the order of the pairs.
std::vector<int64_t> check_example(const AssociativeRecallConfig& config, const RecallExample& example) {
  const auto length = static_cast<size_t>(config.length), pairs = static_cast<size_t>(config.pairs);
  REQUIRE(example.tokens.size() == length);
  REQUIRE(example.labels.size() == length);
  std::map<int32_t, int32_t> value_of;
  std::set<int32_t> values;
  for (size_t i = 0; i < pairs; ++i) {
    const int32_t key = example.tokens[2 * i], value = example.tokens[2 * i + 1];
    CHECK(key >= 1);
    CHECK(key < config.vocabulary / 2);
    CHECK(value >= config.vocabulary / 2);
    CHECK(value < config.vocabulary);
    value_of[key] = value;
    values.insert(value);
  }
  CHECK(value_of.size() == pairs);  // distinct
  CHECK(values.size() == pairs);
  std::map<int32_t, int64_t> slot_of;
  for (size_t t = 0; t < length; ++t) {
    if (t < 2 * pairs || example.tokens[t] == 0) {
      CHECK(example.labels[t] == ignored_target);
      continue;
    }
    CHECK(t % 2 == 0);
    CHECK(value_of.count(example.tokens[t]) == 1);
    CHECK(example.labels[t] == value_of[example.tokens[t]]);
    CHECK(slot_of.emplace(example.tokens[t], (static_cast<int64_t>(t) - 2 * config.pairs) / 2).second);  // asked once
  }
  CHECK(slot_of.size() == pairs);  // every key is asked
  std::vector<int64_t> slots;
  for (size_t i = 0; i < pairs; ++i) slots.push_back(slot_of[example.tokens[2 * i]]);
  return slots;
}

}  // namespace

TEST_CASE(
    "sequences hold distinct keys and values of their halves, every key asked once with its value as the target") {
  AssociativeRecallConfig tight;  // as many questions as places
  tight.vocabulary = 41;
  tight.length = 40;
  tight.pairs = 10;
  AssociativeRecallConfig smallest;
  smallest.vocabulary = 5;
  smallest.length = 4;
  smallest.pairs = 1;
  for (const AssociativeRecallConfig& config : {small_config(), tight, smallest, AssociativeRecallConfig{}}) {
    const AssociativeRecall recall(config);
    std::set<int32_t> keys, values;
    for (int64_t index = 0; index < 300; ++index) {
      const RecallExample example = recall.example("train", index);
      check_example(config, example);
      keys.insert(example.tokens[0]);
      values.insert(example.tokens[1]);
    }
    if (config.vocabulary > 100) continue;
    CHECK(static_cast<int64_t>(keys.size()) == config.vocabulary / 2 - 1);  // all of them occur
    CHECK(static_cast<int64_t>(values.size()) == config.vocabulary - config.vocabulary / 2);
  }
}

TEST_CASE("pairs that are listed several times, and random tokens in place of the filler") {
  AssociativeRecallConfig config = small_config();
  config.pairs = 4;
  config.passes = 3;
  AssociativeRecallConfig filled = config;
  filled.random_filler = true;
  const AssociativeRecall recall(config), with_filler(filled);
  std::set<int32_t> fillers;
  for (int64_t index = 0; index < 200; ++index) {
    const RecallExample example = recall.example("train", index), other = with_filler.example("train", index);
    AssociativeRecallConfig last_pass = config;  // the last list and what follows is a sequence of one pass
    last_pass.length -= 2 * 2 * config.pairs;
    const auto begin = static_cast<std::ptrdiff_t>(2 * 2 * config.pairs);
    check_example(last_pass, {{example.tokens.begin() + begin, example.tokens.end()},
                              {example.labels.begin() + begin, example.labels.end()}});
    for (size_t t = 0; t < static_cast<size_t>(begin); ++t) {
      CHECK(example.tokens[t] == example.tokens[t + static_cast<size_t>(2 * config.pairs)]);
      CHECK(example.labels[t] == ignored_target);
    }
    CHECK(other.labels == example.labels);
    for (size_t t = 0; t < example.tokens.size(); ++t) {
      if (example.tokens[t] != 0) {
        CHECK(other.tokens[t] == example.tokens[t]);
      } else {
        CHECK(other.tokens[t] < config.vocabulary);
        fillers.insert(other.tokens[t]);
      }
    }
  }
  CHECK(fillers.size() == static_cast<size_t>(config.vocabulary));  // the whole vocabulary
  config.passes = 5;
  CHECK_THROWS_WITH_AS(AssociativeRecall{config}, doctest::Contains("4 pairs, listed 5 times"), ConfigError);
}

TEST_CASE(
    "slots follow the power law: the first pair's question stands in slot g with a chance like (g + 1)^(power - 1)") {
  for (const double power : {0.01, 0.5, 1.0}) {
    AssociativeRecallConfig config = small_config();
    config.power = power;
    const AssociativeRecall recall(config);
    const int64_t slots = config.length / 2 - config.pairs, draws = 20000;
    std::vector<double> counts(static_cast<size_t>(slots), 0);
    double total = 0;
    for (int64_t index = 0; index < draws; ++index)
      ++counts[static_cast<size_t>(check_example(config, recall.example("train", index))[0])];
    for (int64_t slot = 0; slot < slots; ++slot) total += std::pow(static_cast<double>(slot + 1), power - 1);
    double chi_squared = 0;
    for (int64_t slot = 0; slot < slots; ++slot) {
      const double expected = draws * std::pow(static_cast<double>(slot + 1), power - 1) / total;
      const double error = counts[static_cast<size_t>(slot)] - expected;
      chi_squared += error * error / expected;
    }
    CHECK_MESSAGE(chi_squared < 40, power, ": ", chi_squared);  // 13 degrees of freedom: one in ten thousand
  }
}

TEST_CASE("sequences are a pure function of seed, split and index, and all three matter") {
  AssociativeRecallConfig config = small_config();
  const AssociativeRecall recall(config), again(config);
  const RecallExample late = recall.example("train", 17), early = recall.example("train", 3);
  CHECK(again.example("train", 3).tokens == early.tokens);
  CHECK(again.example("train", 17).tokens == late.tokens);
  CHECK(again.example("train", 17).labels == late.labels);
  config.seed = 1;
  const AssociativeRecall other(config);
  CHECK(other.example("train", 3).tokens != early.tokens);
  CHECK(other.fingerprint() != recall.fingerprint());
  CHECK(again.fingerprint() == recall.fingerprint());
  // Counts of one split do not change what another holds.
  config = small_config();
  config.train = 7;
  CHECK(AssociativeRecall(config).example("valid", 3).tokens == recall.example("valid", 3).tokens);
  CHECK(AssociativeRecall(config).fingerprint() != recall.fingerprint());
  std::set<std::vector<int32_t>> all;
  for (const char* const split : {"train", "valid", "test"})
    for (int64_t index = 0; index < 200; ++index) all.insert(recall.example(split, index).tokens);
  CHECK(all.size() == 600);
}

TEST_CASE("batches of sequences: every one once per epoch, in an order of its own while training") {
  const AssociativeRecallConfig config = small_config();
  const AssociativeRecall recall(config);
  for (const BatchConfig& cut : {BatchConfig{7, 0}, BatchConfig{1, 3 * 40 + 5}}) {
    SourceInputs inputs;
    inputs.batches = cut;
    inputs.seed = 9;
    const auto source = make_source(config, inputs);
    const BatchSource& training = source->training();
    const auto in_order = source->evaluation(Split::train);
    const BatchSource& ordered = *in_order;
    CHECK(training.examples_per_epoch() == 50);
    CHECK(training.batches_per_epoch(0) == (cut.batch_tokens > 0 ? 17 : 8));
    std::vector<std::vector<std::vector<int32_t>>> epochs;
    for (const auto& [batches, epoch] : {std::pair{&ordered, 0}, {&training, 0}, {&training, 1}}) {
      std::vector<std::vector<int32_t>> rows;
      for (int64_t index = 0; index < batches->batches_per_epoch(epoch); ++index) {
        const Batch batch = batches->batch(epoch, index);
        CHECK(batch.labels.shape() == batch.tokens.shape());
        for (int64_t row = 0; row < batch.tokens.dim(0); ++row) {
          CHECK(batch.examples[row] == static_cast<int32_t>(rows.size()));
          CHECK(batch.segment_ids.rows(row, row + 1).to_vector() == std::vector<int32_t>(40, 1));
          RecallExample example{batch.tokens.rows(row, row + 1).to_vector(),
                                batch.labels.rows(row, row + 1).to_vector()};
          check_example(config, example);
          rows.push_back(example.tokens);
        }
      }
      CHECK(rows.size() == 50);
      epochs.push_back(rows);
    }
    for (int64_t i = 0; i < 50; ++i) CHECK(epochs[0][static_cast<size_t>(i)] == recall.example("train", i).tokens);
    CHECK(epochs[1] != epochs[0]);
    CHECK(epochs[2] != epochs[1]);
    CHECK(std::set(epochs[1].begin(), epochs[1].end()) == std::set(epochs[0].begin(), epochs[0].end()));
    CHECK(std::set(epochs[2].begin(), epochs[2].end()) == std::set(epochs[0].begin(), epochs[0].end()));
    CHECK(training.batch(1, 2).tokens.to_vector() == training.batch(1, 2).tokens.to_vector());
    for (const int64_t index : {int64_t{-1}, training.batches_per_epoch(0)})
      for (const BatchSource* const batches : {&training, &ordered})
        CHECK_THROWS_WITH_AS(batches->batch(0, index), doctest::Contains("is outside an epoch of"),
                             std::invalid_argument);
  }
}

TEST_CASE("a configuration of associative recall that contradicts itself is refused") {
  for (const auto& [change, says] : std::vector<std::pair<void (*)(AssociativeRecallConfig&), const char*>>{
           {[](AssociativeRecallConfig& c) { c.length = 41; }, "length: 41 is odd"},
           {[](AssociativeRecallConfig& c) { c.pairs = 11; },
            "pairs: 11 pairs, listed once, and their questions need a length of at least 44"},
           {[](AssociativeRecallConfig& c) { c.vocabulary = 40; },
            "vocabulary: must be more than the length (40), got 40"}}) {
    AssociativeRecallConfig config = small_config();
    change(config);
    const std::string message = message_of<ConfigError>([&] { AssociativeRecall recall(config); });
    CHECK_MESSAGE(contains(message, says), message);
  }
}

TEST_CASE("the number tokenizer writes tokens as numbers") {
  const NumberTokenizer tokenizer(300);
  CHECK(tokenizer.encode(" 7 0\n299\t12") == std::vector<int32_t>{7, 0, 299, 12});
  CHECK(tokenizer.decode({7, 0, 299}) == "7 0 299");
  CHECK(tokenizer.boundary("12 345", 5) == 3);
  CHECK(tokenizer.boundary("12 345", 9) == 6);
  for (const char* text : {"300", "-1", "1.5", "x", "99999999999", "1\n7 3x"})
    CHECK_THROWS_AS(tokenizer.encode(text), Error);
  CHECK(contains(message_of<Error>([&] { tokenizer.encode("1\n7 3x", "input"); }), "input:2:3: '3x' is not a number"));
  CHECK_THROWS_AS(tokenizer.piece(300, -1), std::invalid_argument);
}
