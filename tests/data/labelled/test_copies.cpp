// Copies of a text are held out together.
#include <set>

#include "data/checks/copies.hpp"
#include "data/pairs/pair_source.hpp"
#include "labelled_support.hpp"

namespace capstan {
namespace {

TEST_CASE("copies: each refers to the first one, in the order of their places") {
  const std::vector<Copy> found = find_copies({7, 3, 7, 5, 3, 7, 9});
  REQUIRE(found.size() == 3);
  CHECK(found[0].place == 2);
  CHECK(found[0].first == 0);
  CHECK(found[1].place == 4);
  CHECK(found[1].first == 1);
  CHECK(found[2].place == 5);
  CHECK(found[2].first == 0);
  CHECK(places_but(found, 7) == std::vector<size_t>{0, 1, 3, 6});
  CHECK(find_copies({1, 2, 3}).empty());
  CHECK(find_copies({}).empty());
}

std::set<std::string> set_of(const ClassificationData& data, const ExampleSet& examples) {
  std::set<std::string> texts;
  for (int64_t i = 0; i < examples.size(); ++i) texts.insert(text_of(data, examples, i));
  return texts;
}

/// Texts of 0 to 99 as often as `times`, of one class or another, "same" in both.
std::string numbers(int times) {
  std::string rows;
  for (int copy = 0; copy < times; ++copy)
    for (int i = 0; i < 100; ++i) rows += (i % 4 == 0 ? "rare\t" : "often\t") + std::to_string(i) + "\n";
  return rows;
}

TEST_CASE("copies of a text are held out together, whatever their labels: a share, folds, texts with any labels") {
  const TemporaryFolder folder;
  LabelledSourceConfig once = config_of({folder.write("once.tsv", numbers(1))}),
                       often = config_of({folder.write("often.tsv", numbers(3) + "rare\t1\noften\t0\n")}),
                       sets = config_of({folder.write("sets.tsv", numbers(2))});
  sets.multi_label = true;
  sets.label_separator = "|";
  const auto check_apart = [](const ClassificationData& data) {
    CHECK(data.valid.size() > 0);
    const std::set<std::string> held = set_of(data, data.valid), learnt = set_of(data, data.train);
    for (const std::string& text : held) CHECK_MESSAGE(learnt.count(text) == 0, text);
    CHECK(held.size() + learnt.size() == 100);
  };
  for (LabelledSourceConfig* const config : {&once, &often, &sets}) {
    config->valid_fraction = 0.2;
    check_apart(load_labelled(*config));
    config->folds = 5;
    for (config->fold = 0; config->fold < 5; ++config->fold) check_apart(load_labelled(*config));
    config->folds = 0;
  }
  const ClassificationData of_once = load_labelled(once), of_often = load_labelled(often);
  CHECK(set_of(of_often, of_often.valid) == set_of(of_once, of_once.valid));  // copies change no draw
  CHECK(of_often.valid.size() >= 3 * of_once.valid.size());
}

/// Texts 0 to 99 of 20 customers, five each; text 7 is also of customer 12, and text 99 of nobody.
std::string rows_of_customers(bool json) {
  std::string rows = json ? "" : "label\ttext\tcustomer\n";
  const auto add = [&](int text, const std::string& customer) {
    const char* const label = text % 3 == 0 ? "good" : "bad";
    rows += json ? fmt::format("{{\"label\": \"{}\", \"text\": \"{}\", \"customer\": {}}}\n", label, text, customer)
                 : fmt::format("{}\t{}\t{}\n", label, text, customer == "null" ? "" : customer);
  };
  for (int text = 0; text < 100; ++text) add(text, text == 99 ? "null" : std::to_string(text % 20));
  add(7, "12");
  return rows;
}

TEST_CASE("texts of one group are held out together, and groups that a copy connects") {
  const TemporaryFolder folder;
  const std::string held_file = folder.write("held.tsv", "good\tx\nbad\ty\n");
  std::vector<std::set<std::string>> held;  // by the same draw from both formats
  for (const bool json : {false, true}) {
    CAPTURE(json);
    LabelledSourceConfig config =
        config_of({folder.write(json ? "customers.jsonl" : "customers.tsv", rows_of_customers(json))});
    config.header = json ? config.header : true;
    config.label_column = "label";
    config.text_columns = {"text"};
    config.group_column = "customer";
    const auto check_apart = [](const ClassificationData& data) {
      const auto groups_of = [&](const ExampleSet& examples) {
        std::set<int> groups;
        for (const std::string& text : set_of(data, examples))
          groups.insert(text == "99" ? 20 : std::stoi(text) % 20 == 12 ? 7 : std::stoi(text) % 20);
        return groups;
      };
      const std::set<int> learnt = groups_of(data.train), away = groups_of(data.valid);
      CHECK(data.valid.size() > 0);
      CHECK(learnt.size() + away.size() == 20);   // 12 and 7 are one, and 99 is its own
      std::map<uint64_t, std::set<int>> by_hash;  // by which a linear classifier makes folds of what is left
      for (int64_t i = 0; i < data.train.size(); ++i) {
        const int text = std::stoi(text_of(data, data.train, i));
        by_hash[data.train.hash(i)].insert(text == 99 ? 20 : text % 20 == 12 ? 7 : text % 20);
      }
      CHECK(by_hash.size() == learnt.size());
    };
    config.valid_fraction = 0.2;
    const ClassificationData data = load_labelled(config);
    check_apart(data);
    held.push_back(set_of(data, data.valid));
    config.folds = 5;
    for (config.fold = 0; config.fold < 5; ++config.fold) check_apart(load_labelled(config));
    config.folds = config.fold = 0;
    config.group_column = "label";
    CHECK_THROWS_WITH_AS(load_labelled(config), doctest::Contains("data.group_column: there are too few"), ConfigError);
  }
  CHECK(held[0] == held[1]);
  LabelledSourceConfig one = config_of({folder.write("one.tsv", "good\ta\tm\nbad\tb\tm\n")});
  one.text_columns = {"2"};
  one.group_column = "3";
  CHECK_THROWS_WITH_AS(load_labelled(one), doctest::Contains("data.group_column: all texts are of one group"),
                       ConfigError);
  one.train = {folder.write("short.tsv", "good\ta\nbad\tb\n")};
  CHECK_THROWS_WITH_AS(load_labelled(one), doctest::Contains("the group (data.group_column: 3) is column 3"), Error);
  one.train = {folder.write("two.tsv", "good\ta\tm\nbad\tb\tn\n")};
  one.label_column = "1";
  one.valid = {held_file};  // a file of its own needs no groups
  CHECK(load_labelled(one).valid.size() == 2);
}

TEST_CASE("pairs with the same source are held out together") {
  const TemporaryFolder folder;
  PairSourceConfig config;
  std::string rows;
  for (int i = 0; i < 60; ++i) rows += fmt::format("question {}\tanswer {}\n", i % 20, i);
  config.train = {folder.write("pairs.tsv", rows)};
  config.valid_fraction = 0.3;
  config.tokenizer = ByteTokenizerConfig{};
  const auto source = make_source(config, {});
  const auto held = source->evaluation_pairs(Split::valid);
  CHECK(held.size() == 18);  // 6 of 20 questions
  std::map<std::vector<int32_t>, int> times;
  for (const EvaluationPair& pair : held) ++times[pair.prompt];
  CHECK(times.size() == 6);
  for (const auto& [prompt, count] : times) CHECK(count == 3);
}

}  // namespace
}  // namespace capstan
