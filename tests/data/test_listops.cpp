#include <map>
#include <set>

#include "core/base/error.hpp"
#include "data/files/text_file.hpp"
#include "data/formats/table_format.hpp"
#include "data/generated/listops.hpp"
#include "data/tokenizers/blank_separated.hpp"
#include "support.hpp"

using namespace capstan;

namespace {

ListOpsConfig small_listops() {
  ListOpsConfig config;
  config.train = 300;
  config.valid = config.test = 50;
  config.min_length = 5;
  config.max_length = 60;
  config.max_depth = 5;
  config.max_arguments = 5;
  return config;
}

std::string text_of(const ExampleSet& examples, int64_t i) { return ListOpsTokenizer().decode(examples.tokens(i)); }

int depth_of(const std::vector<int32_t>& tokens) {
  int depth = 1, deepest = 1;
  for (const int32_t token : tokens) {
    if (token >= 10) depth += token == ListOpsTokenizer::end ? -1 : 1;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

int32_t value_of(std::string_view text) { return listops_value(ListOpsTokenizer().encode(text)); }

}  // namespace

TEST_CASE("values of expressions") {
  struct Row {
    const char* text;
    int32_t value;
  };
  for (const Row& row : {Row{"7", 7}, Row{"[MAX 2 9 [MIN 4 7 ] 0 ]", 9}, Row{"[MIN 4 7 2 ]", 2}, Row{"[MED 1 4 ]", 2},
                         Row{"[MED 9 1 5 ]", 5}, Row{"[MED 3 8 1 4 ]", 3}, Row{"[SM 9 9 9 ]", 7}, Row{"[MIN 3 X", 3},
                         Row{"( ( ( ( [MAX 2 ) 9 ) 4 ) ] )", 9}})
    CHECK_MESSAGE(value_of(row.text) == row.value, row.text);
  for (const char* text : {"", "( )", "[MAX 1", "]", "[MAX ]", "1 2", "[SM 1 ] ]"})
    CHECK_THROWS_AS(value_of(text), Error);
  CHECK(contains(message_of<Error>([] { value_of("]"); }), "listops: token 1 is ']' without an operator"));
  CHECK(contains(message_of<Error>([] { value_of("[MAX 1\n 2 ten ]"); }), "text:2:4: 'ten' is not a token"));
  std::string deep;  // no recursion
  for (int i = 0; i < 200000; ++i) deep += "[MAX ";
  CHECK_THROWS_AS(value_of(deep), Error);
}

TEST_CASE("the evaluator agrees with all 10,000 labels of the original test file") {
  const std::string path = real_file("listops_nyu/test_d20s.tsv.gz");
  if (path.empty()) return;
  BadRows bad(OnError::stop);
  const auto rows = read_table(read_text_file(path), path, *format_named("tsv"), {}, bad);
  CHECK(rows.size() == 10000);
  int wrong = 0;
  for (const LabelledText& row : rows) wrong += std::to_string(value_of(row.text)) != row.label;
  CHECK(wrong == 0);
}

TEST_CASE("generated examples keep the rules") {
  const ListOpsConfig config = small_listops();
  const ClassificationData data = make_listops(config);
  CHECK(data.train.size() == 300);
  CHECK(data.valid.size() == 50);
  CHECK(data.test.size() == 50);
  CHECK(data.classes.size() == 10);
  CHECK(data.tokenizer->vocabulary_size() == 15);
  std::set<std::string> texts;
  for (const ExampleSet* split : {&data.train, &data.valid, &data.test})
    for (int64_t i = 0; i < split->size(); ++i) {
      const std::string text = text_of(*split, i);
      CHECK(texts.insert(text).second);
      CHECK(value_of(text) == split->label(i));
      CHECK(split->length(i) > config.min_length);
      CHECK(split->length(i) < config.max_length);
      CHECK(depth_of(split->tokens(i)) <= config.max_depth);
    }
}

TEST_CASE("generated examples are a function of the seed alone") {
  ListOpsConfig config = small_listops();
  const ClassificationData first = make_listops(config);
  CHECK(make_listops(config).fingerprint() == first.fingerprint());
  config.train = 20;  // fewer: the same ones
  const ClassificationData fewer = make_listops(config);
  CHECK(fewer.valid.fingerprint() == first.valid.fingerprint());
  for (int64_t i = 0; i < 20; ++i) CHECK(text_of(fewer.train, i) == text_of(first.train, i));
  config.seed = 1;
  CHECK(make_listops(config).fingerprint() != fewer.fingerprint());
}

TEST_CASE("the draws of the Long Range Arena setting") {
  const ListOpsConfig config;
  int kept = 0, all_levels = 0, root[4] = {};
  constexpr uint64_t draws = 4000;
  for (uint64_t attempt = 0; attempt < draws; ++attempt) {
    const auto tokens = listops_draw(config, "train", attempt);
    if (!tokens) continue;
    ++kept;
    all_levels += depth_of(*tokens) == 10;  // nine operators, then digits
    ++root[(*tokens)[0] - ListOpsTokenizer::minimum];
  }
  CHECK(kept / double(draws) == doctest::Approx(0.084).epsilon(0.2));  // four standard deviations
  CHECK(all_levels == kept);
  for (const int count : root) CHECK(count > kept / 8);
  CHECK(listops_draw(config, "train", 17) == listops_draw(config, "train", 17));
}

TEST_CASE("operators and digits come with the probabilities asked for") {
  ListOpsConfig config;
  config.min_length = 0;
  config.max_length = 1000000;
  config.max_depth = 2;  // a digit, or one operator with digits
  int operators = 0, digits[10] = {};
  std::map<size_t, int> arguments;
  constexpr int draws = 8000;
  for (uint64_t attempt = 0; attempt < draws; ++attempt) {
    const auto tokens = listops_draw(config, "train", attempt).value();
    if (tokens.size() == 1) {
      ++digits[tokens[0]];
    } else {
      ++operators;
      ++arguments[tokens.size() - 2];
    }
  }
  CHECK(operators == doctest::Approx(0.25 * draws).epsilon(0.1));
  for (const int count : digits) CHECK(count == doctest::Approx(0.075 * draws).epsilon(0.2));
  CHECK(arguments.begin()->first == 2);
  CHECK(arguments.rbegin()->first == 10);
  for (const auto& [count, seen] : arguments) CHECK(seen == doctest::Approx(0.25 * draws / 9).epsilon(0.3));
}

TEST_CASE("settings that allow too few expressions are refused") {
  ListOpsConfig config = small_listops();
  config.max_depth = 1;
  CHECK(contains(message_of<Error>([&] { make_listops(config); }), "listops: found only 0 of 50 test expressions"));
  config.min_length = 59;
  CHECK_THROWS_AS(make_listops(config), ConfigError);
}
