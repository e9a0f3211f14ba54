#include <set>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/io/byte_store.hpp"
#include "core/io/file.hpp"
#include "data/batches/batcher.hpp"
#include "data/files/token_row.hpp"
#include "support.hpp"

using namespace capstan;

namespace {

/// Example i has label i mod 3 and begins with token i + 1; lengths differ.
ExampleSet random_examples(int64_t count) {
  ExampleSet examples;
  RandomStream random(random_key(9, "lengths"));
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int32_t> tokens(1 + random.below(40), 7);
    tokens[0] = static_cast<int32_t>(i) + 1;
    examples.add(tokens, static_cast<int32_t>(i % 3));
  }
  return examples;
}

/// Checks the form of a batch and returns its examples.
std::vector<int64_t> check_batch(const Batch& batch, const ExampleSet& examples) {
  std::vector<int64_t> found;
  const int64_t width = batch.tokens.dim(1);
  int64_t longest = 0;
  for (int64_t row = 0; row < batch.tokens.dim(0); ++row) {
    const int64_t example = batch.tokens[row * width] - 1;
    found.push_back(example);
    CHECK(batch.labels[row] == examples.label(example));
    longest = std::max(longest, examples.length(example));
    for (int64_t t = 0; t < width; ++t) {
      const bool inside = t < examples.length(example);
      CHECK(batch.segment_ids[row * width + t] == (inside ? 1 : 0));
      CHECK(batch.tokens[row * width + t] == (inside ? examples.tokens(example)[t] : 0));
    }
  }
  CHECK(width == longest);
  return found;
}

}  // namespace

TEST_CASE("bucketed batches hold every example once, with little padding") {
  const ExampleSet examples = random_examples(1000);
  for (const BatchConfig& config :
       {BatchConfig{8, 0}, BatchConfig{7, 0}, BatchConfig{1, 300}, BatchConfig{5000, 0}, BatchConfig{1, 1}}) {
    const ExampleBatches batches(examples, config, 4);
    std::set<std::vector<int64_t>> first_batches;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::set<int64_t> seen;
      std::set<int32_t> places;
      int64_t padded = 0;
      for (int64_t i = 0; i < batches.batches_per_epoch(epoch); ++i) {
        const Batch batch = batches.batch(epoch, i);
        const auto rows = check_batch(batch, examples);
        for (size_t row = 0; row < rows.size(); ++row) {
          CHECK(seen.insert(rows[row]).second);
          CHECK(places.insert(batch.examples[static_cast<int64_t>(row)]).second);
          CHECK(batches.example(epoch, batch.examples[static_cast<int64_t>(row)]) == rows[row]);
        }
        if (i == 0) first_batches.insert(rows);
        padded += batch.tokens.size();
        if (config.batch_tokens > 0)
          CHECK((batch.tokens.size() <= config.batch_tokens || batch.tokens.dim(0) == 1));
        else
          CHECK(batch.tokens.dim(0) <= config.batch_size);
      }
      CHECK(seen.size() == 1000);
      CHECK(*places.rbegin() == 999);
      if (config.batch_size < 1000) CHECK(padded < 1.1 * static_cast<double>(examples.token_count()));
    }
    CHECK(first_batches.size() == 3);
  }
}

TEST_CASE("batches do not come in the order of length") {
  const ExampleSet examples = random_examples(1000);
  const ExampleBatches batches(examples, {8, 0}, 4);
  int falls = 0;  // in the order of length there would be one per chunk
  for (int64_t i = 1; i < batches.batches_per_epoch(0); ++i)
    falls += batches.batch(0, i).tokens.dim(1) < batches.batch(0, i - 1).tokens.dim(1);
  CHECK(falls > 30);
  CHECK(falls < 95);
}

TEST_CASE("bucketed batches are a pure function of seed, epoch and index") {
  const ExampleSet examples = random_examples(500);
  for (const BatchConfig& config : {BatchConfig{8, 0}, BatchConfig{1, 200}}) {
    const ExampleBatches first(examples, config, 5), second(examples, config, 5), other(examples, config, 6);
    const Batch wanted = first.batch(3, 17);
    for (int64_t i = 0; i < 6; ++i) second.batch(i, 2 * i);
    CHECK(equal(second.batch(3, 17), wanted));
    CHECK(equal(second.batch(3, 17), wanted));
    CHECK_FALSE(equal(other.batch(3, 17), wanted));
    CHECK_FALSE(equal(first.batch(4, 17), wanted));
    CHECK_THROWS_AS(first.batch(0, first.batches_per_epoch(0)), std::invalid_argument);
    CHECK_THROWS_AS(first.batch(0, -1), std::invalid_argument);
  }
  CHECK_THROWS_AS(ExampleBatches(ExampleSet{}, {}, 0), std::invalid_argument);
}

TEST_CASE("rows of a bucketed batch are made without the others, as wide as the whole batch") {
  const ExampleSet examples = random_examples(200);
  const ExampleBatches batches(examples, {7, 0}, 4);
  for (int64_t i = 0; i < batches.batches_per_epoch(1); ++i) check_rows(batches, 1, i);
}

TEST_CASE("padded groups: every row once, and none makes many others as long as itself") {
  std::vector<std::vector<int32_t>> rows(64, {1, 2, 3});
  rows[10].assign(100'000, 7);
  rows[20].clear();
  std::vector<int64_t> seen;
  for_padded_groups(rows, [&](const std::vector<int64_t>& indices, const Batch& group) {
    CHECK(group.tokens.size() <= (indices.size() == 1 ? 100'000 : 16'384));
    for (size_t i = 0; i < indices.size(); ++i) {
      const int32_t* const row = group.tokens.data() + static_cast<int64_t>(i) * group.tokens.dim(1);
      const std::vector<int32_t>& expected = rows[static_cast<size_t>(indices[i])];
      CHECK(std::equal(expected.begin(), expected.end(), row));
      seen.push_back(indices[i]);
    }
  });
  std::sort(seen.begin(), seen.end());
  REQUIRE(seen.size() == rows.size());
  for (size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == static_cast<int64_t>(i));
}

TEST_CASE("evaluation batches: every example once, the longest first, under its own index") {
  const ExampleSet examples = random_examples(301);
  for (const BatchConfig& config : {BatchConfig{8, 0}, BatchConfig{1, 200}}) {
    const ExampleBatches batches(examples, config, std::nullopt);
    std::set<int64_t> seen;
    int64_t last_width = 40;
    for (int64_t i = 0; i < batches.batches_per_epoch(0); ++i) {
      const Batch batch = batches.batch(0, i);
      const auto rows = check_batch(batch, examples);
      for (size_t row = 0; row < rows.size(); ++row) {
        CHECK(seen.insert(rows[row]).second);
        CHECK(batch.examples[static_cast<int64_t>(row)] == rows[row]);
      }
      CHECK(batch.tokens.dim(1) <= last_width);
      last_width = batch.tokens.dim(1);
    }
    CHECK(seen.size() == 301);
  }
  CHECK(ExampleBatches(ExampleSet{}, {}, std::nullopt).batches_per_epoch(0) == 0);
}

TEST_CASE("examples: tokens in a byte or four, in memory or in a file, are the same, and so is their fingerprint") {
  for (const int32_t largest : {200, 300}) {
    ExampleSet held, filed("", 16);
    std::vector<std::vector<int32_t>> expected;
    std::vector<int32_t> all, labels;
    std::vector<int64_t> offsets{0};
    for (int32_t i = 0; i < 50; ++i) {
      expected.push_back({i, 255, i == 30 ? largest : 7});
      all.insert(all.end(), expected.back().begin(), expected.back().end());
      offsets.push_back(static_cast<int64_t>(all.size()));
      labels.push_back(i % 3);
      held.add(expected.back(), i % 3);
      filed.add(expected.back(), i % 3);
    }
    CHECK(held.fingerprint() == Fingerprint().add(all).add(offsets).add(labels).hex());
    CHECK(filed.fingerprint() == held.fingerprint());
    for (int64_t i = 0; i < 50; ++i) {
      CHECK(held.tokens(i) == expected[static_cast<size_t>(i)]);
      CHECK(filed.tokens(i) == expected[static_cast<size_t>(i)]);
      std::string bytes;
      CHECK(filed.read_bytes(i, bytes) == (largest < 256));
      if (largest < 256)
        CHECK(std::vector<int32_t>{static_cast<uint8_t>(bytes[0]), static_cast<uint8_t>(bytes[1]),
                                   static_cast<uint8_t>(bytes[2])} == filed.tokens(i));
    }
  }
}

TEST_CASE("bytes beyond the limit are in a file without a name") {
  const TemporaryFolder folder;
  ByteStore store(folder.path("new"), 10);
  std::string all;
  for (int i = 0; i < 300'000; ++i) {
    const std::string some = std::to_string(i);
    store.append(some);
    all += some;
    if (i == 5) CHECK(store.in_memory());
  }
  CHECK_FALSE(store.in_memory());
  CHECK(names_in_folder(folder.path("new")).empty());
  CHECK(store.size() == static_cast<int64_t>(all.size()));
  for (const auto& [at, count] : {std::pair<size_t, size_t>{0, all.size()}, {12345, 700'000}, {all.size() - 9, 9}}) {
    std::string some(count, ' ');
    store.read(static_cast<int64_t>(at), some.data(), count);
    CHECK(some == all.substr(at, count));
  }
}
