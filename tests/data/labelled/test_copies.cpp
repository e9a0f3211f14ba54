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
