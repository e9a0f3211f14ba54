// Pairs: reading, cutting, packing into rows.
#include <set>

#include "core/array/segments.hpp"
#include "core/base/error.hpp"
#include "data/pairs/packed_pairs.hpp"
#include "data/pairs/pair_source.hpp"
#include "support.hpp"

using namespace capstan;

namespace {

constexpr int32_t pair_end = 100, separator = 101;

ExampleSet random_pairs(int64_t count) {
  RandomStream random({3, 4});
  ExampleSet pairs;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int32_t> source(random.below(9)), target(1 + random.below(6));
    for (auto* part : {&source, &target})
      for (int32_t& token : *part) token = static_cast<int32_t>(random.below(90));
    source.push_back(90 + static_cast<int32_t>(i % 10));
    add_pair(pairs, source, target, pair_end, separator);
  }
  return pairs;
}

/// The documents of a batch, as sequences of tokens and the label of the last one; checks the labels.
std::vector<std::vector<int32_t>> documents_of(const Batch& batch) {
  std::vector<std::vector<int32_t>> documents;
  const Segments segments(batch.segment_ids);
  for (const auto& span : segments.spans()) {
    std::vector<int32_t> tokens;
    bool in_target = false;
    for (int64_t t = span.begin; t < span.end; ++t) {
      const int64_t at = span.row * segments.length() + t;
      tokens.push_back(batch.tokens[at]);
      in_target = in_target || batch.tokens[at] == separator;
      const int32_t next = t + 1 < span.end ? batch.tokens[at + 1] : pair_end;
      CHECK(batch.labels[at] == (in_target ? next : ignored_target));
    }
    CHECK(in_target);
    CHECK(tokens.front() == pair_end);
    tokens.push_back(pair_end);
    documents.push_back(tokens);
  }
  for (int64_t at = 0; at < batch.tokens.size(); ++at)
    if (batch.segment_ids[at] == 0) CHECK(batch.labels[at] == ignored_target);
  return documents;
}

std::string load_error(const PairSourceConfig& config) {
  return message_of<Error>([&] { make_source(config, {}); });
}

}  // namespace

TEST_CASE("packed pairs: every pair is one document of every epoch") {
  const ExampleSet pairs = random_pairs(2500);
  std::multiset<std::vector<int32_t>> expected;
  int64_t tokens = 0;
  for (int64_t i = 0; i < pairs.size(); ++i) {
    expected.insert(pairs.tokens(i));
    tokens += pairs.length(i) - 1;
  }
  BatchConfig config;
  config.batch_size = 7;
  for (const std::optional<uint64_t> seed : {std::optional<uint64_t>(5), std::optional<uint64_t>()}) {
    const PackedPairs batches(pairs, 40, config, seed);
    for (const int64_t epoch : {0, 1}) {
      std::multiset<std::vector<int32_t>> found;
      int64_t rows = 0;
      for (int64_t i = 0; i < batches.batches_per_epoch(epoch); ++i) {
        const Batch batch = batches.batch(epoch, i);
        CHECK(batch.tokens.dim(1) <= 40);
        for (int64_t row = 0; row < batch.tokens.dim(0); ++row) CHECK(batch.examples[row] == rows++);
        for (auto& document : documents_of(batch)) found.insert(std::move(document));
      }
      CHECK(found == expected);
      CHECK(rows * 40 < tokens * 1.1);  // little padding
    }
    CHECK_THROWS_AS(batches.batch(0, batches.batches_per_epoch(0)), std::invalid_argument);
    CHECK_THROWS_AS(batches.batch(0, -1), std::invalid_argument);
  }
}

TEST_CASE("packed pairs: a function of seed and epoch, whatever was asked before") {
  const ExampleSet pairs = random_pairs(300);
  const PackedPairs one(pairs, 40, {}, 5), other(pairs, 40, {}, 5), third(pairs, 40, {}, 6);
  const auto tokens = [](const PackedPairs& batches, int64_t epoch) {
    return batches.batch(epoch, 0).tokens.to_vector();
  };
  const std::vector<int32_t> first = tokens(one, 0), second = tokens(one, 1);
  CHECK(first != second);
  CHECK(tokens(one, 0) == first);
  CHECK(tokens(other, 1) == second);
  CHECK(tokens(third, 0) != first);
  BatchConfig by_tokens;
  by_tokens.batch_tokens = 100;
  CHECK(PackedPairs(pairs, 40, by_tokens, 5).batch(0, 0).tokens.dim(0) == 2);
  CHECK_THROWS_AS(PackedPairs(pairs, 5, {}, 5), std::invalid_argument);
  CHECK_THROWS_AS(PackedPairs(ExampleSet(), 5, {}, 5), std::invalid_argument);
}

TEST_CASE("pairs: tables of every format give the same pairs") {
  const TemporaryFolder folder;
  const std::vector<std::string> files = {
      folder.write("a.tsv", "one two\tthree\nfour\tfive six\n"),
      folder.write("a.csv", "\"one two\",three\nfour,five six\n"),
      folder.write("a.jsonl",
                   "{\"prompt\": \"one two\", \"completion\": \"three\"}\n{\"completion\": \"five six\", "
                   "\"prompt\": \"four\"}\n")};
  std::set<std::vector<int32_t>> batches;
  for (const std::string& file : files) {
    PairSourceConfig config;
    config.train = {file};
    config.valid_fraction = 0;
    config.tokenizer = ByteTokenizerConfig{};
    const auto source = make_source(config, {});
    const Batch batch = source->training().batch(0, 0);
    batches.insert(batch.tokens.to_vector());
    CHECK(source->tokenizer().vocabulary_size() == 256);
    CHECK(Segments(batch.segment_ids).spans().size() == 2);
  }
  CHECK(batches.size() == 1);
  PairSourceConfig named;
  named.train = {folder.write("b.csv", "answer,id,question\nyes,1,why\nno,2,when\n")};
  named.header = true;
  named.source_column = "question";
  named.target_column = "answer";
  named.valid_fraction = 0.5;
  named.tokenizer = ByteTokenizerConfig{};
  const auto source = make_source(named, {});
  const std::vector<EvaluationPair> held = source->evaluation_pairs(Split::valid);
  REQUIRE(held.size() == 1);
  CHECK((held[0].text == "yes" || held[0].text == "no"));
  const std::string question = held[0].text == "yes" ? "why" : "when";
  std::vector<int32_t> prompt{256};
  for (const char c : question) prompt.push_back(c);
  prompt.push_back(257);
  CHECK(held[0].prompt == prompt);
  CHECK(held[0].target == std::vector<int32_t>(held[0].text.begin(), held[0].text.end()));
  CHECK_THROWS_AS(source->evaluation_pairs(Split::train), Error);
}

TEST_CASE("pairs: long sources are cut, targets never") {
  const TemporaryFolder folder;
  PairSourceConfig config;
  config.train = {folder.write("a.tsv", "abcdefgh\txyz\n")};
  config.valid_fraction = 0;
  config.tokenizer = ByteTokenizerConfig{};
  config.max_source = 4;
  config.max_length = 9;
  const auto source_text = [&] {
    const Batch batch = make_source(config, {})->training().batch(0, 0);
    std::string text;
    for (int64_t t = 1; t < 5; ++t) text += static_cast<char>(batch.tokens[t]);
    CHECK(batch.tokens[5] == 257);
    return text;
  };
  CHECK(source_text() == "abcd");
  config.truncate = Truncate::tail;
  CHECK(source_text() == "efgh");
  config.truncate = Truncate::error;
  CHECK(contains(load_error(config), "a.tsv:1: the text has 8 tokens"));
  config.truncate = Truncate::head;
  config.max_length = 8;
  const std::string message = load_error(config);
  CHECK(contains(message, "a.tsv:1: the pair has 9 tokens (4 of the source, 3 of the target"));
  CHECK(contains(message, "targets are never cut"));
}

TEST_CASE("pairs: unusable rows name place and remedy, or are left out") {
  const TemporaryFolder folder;
  PairSourceConfig config;
  config.tokenizer = ByteTokenizerConfig{};
  config.valid_fraction = 0;
  config.train = {folder.write("a.tsv", "one\ttwo\nthree\n\t\nfour\t\n")};
  const std::string message = load_error(config);
  CHECK(contains(message, "a.tsv:2: too few columns: found 1, but most rows have 2"));
  config.target_column = "3";
  config.train = {folder.write("b.tsv", "one\ttwo\n")};
  CHECK(contains(load_error(config),
                 "b.tsv:1: too few columns: found 2, but the target is column 3 and the source column 1"));
  CHECK(contains(load_error(config), "target_column and source_column"));
  config.target_column.reset();
  config.train = {folder.write("e.tsv", "one\ttwo\nfour\t\n")};
  CHECK(contains(load_error(config), "e.tsv:2: the target is empty"));
  config.on_error = OnError::skip;
  CHECK(make_source(config, {})->description().front().find("1 row") != std::string::npos);
  config.on_error = OnError::stop;
  config.train = {folder.write("a.jsonl", "{\"prompt\": \"one\", \"answer\": \"two\"}\n")};
  CHECK(contains(load_error(config), "no key 'completion'"));
  CHECK(contains(load_error(config), "target_column"));
  config.max_source = config.max_length;
  CHECK(message_of<ConfigError>([&] { make_source(config, {}); }).find("data.max_source") != std::string::npos);
}

TEST_CASE("pairs: targets, unlike labels, may be of any bytes that the tokenizer reads") {
  const TemporaryFolder folder;
  PairSourceConfig config;
  config.train = {folder.write("latin1.tsv", "un caf\xe9\tcaf\xe9\ndeux\ttwo\n")};
  config.tokenizer = ByteTokenizerConfig{};
  CHECK_NOTHROW(make_source(config, {}));
}

TEST_CASE("pairs: the report of data check") {
  const TemporaryFolder folder;
  PairSourceConfig config;
  config.tokenizer = ByteTokenizerConfig{};
  config.max_source = 3;
  config.train = {folder.write("a.tsv", "one\ttwo\nthree\tfour\nfive\n")};
  config.valid = {folder.write("b.tsv", "six\tseven\n")};
  const DataReport report = check_source(config, {});
  REQUIRE(report.tables.size() == 1);
  REQUIRE(report.tables[0].rows.size() == 2);
  CHECK(std::get<int64_t>(report.tables[0].rows[0][1]) == 2);
  CHECK(std::get<int64_t>(report.tables[0].rows[0][5]) == 1);
  REQUIRE(report.errors.size() == 1);
  CHECK(contains(report.errors[0], "a.tsv:3"));
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].check == "truncated");
  std::string rows = "three\tfour\n";
  for (int i = 0; i < 19; ++i) rows += "one\ttwo\n";
  config.train = {folder.write("c.tsv", rows)};  // one of twenty is cut: not more than 5 %
  CHECK(check_source(config, {}).warnings.empty());
}

TEST_CASE("pairs: targets that the tokenizer cannot write as they are give a warning") {
  const TemporaryFolder folder;
  PairSourceConfig config;
  std::string rows;
  for (int i = 10; i < 40; ++i) rows += fmt::format("31.12.19{0}\t19{0}-12-31\n", i);
  config.train = {folder.write("a.tsv", rows)};
  config.valid_fraction = 0;
  const auto checks = [&] {
    std::vector<std::string> names;
    for (const DataWarning& warning : make_source(config, {})->warnings()) names.push_back(warning.check);
    return names;
  };
  config.tokenizer = WordTokenizerConfig{WordSplit::words, true, 30000, 1};
  CHECK(checks() == std::vector<std::string>{"rewritten"});
  config.tokenizer = ByteTokenizerConfig{};
  CHECK(checks().empty());
}
