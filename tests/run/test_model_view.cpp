// What `capstan report` shows of a model: the words of a text, and which weights of tokens for each other.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

#include "core/io/log.hpp"
#include "run/report/model_view.hpp"
#include "run/run.hpp"
#include "run/setup/run_data.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace capstan;

namespace {

TEST_CASE("tokens belong to the words they spell") {
  const auto bytes = make_tokenizer(ByteTokenizerConfig{}, {});
  const Words spelled = words_of(*bytes, bytes->encode("a  caf\xC3\xA9 b"));
  CHECK(spelled.texts == std::vector<std::string>{"a  ", "caf\xC3\xA9 ", "b"});
  CHECK(spelled.of_token == std::vector<size_t>{0, 0, 0, 1, 1, 1, 1, 1, 1, 2});
  const auto words = make_tokenizer(WordTokenizerConfig{}, {"one two\nthree"});
  const Words whole = words_of(*words, words->encode("one two\nthree"));
  REQUIRE(whole.texts.size() >= 3);
  CHECK(whole.texts[0] == "one");
  CHECK(whole.texts[1] == " two\n");
  CHECK(whole.texts[2].substr(0, 5) == "three");
  CHECK(words_of(*bytes, {}).texts.empty());
  // What stands between two texts is no token of the tokenizer.
  const Words documents = words_of(*bytes, {256, 'a', 'b', 256, 'c'});
  CHECK(documents.of_token == std::vector<size_t>{0, 1, 1, 2, 3});
  CHECK(documents.texts[1] == "ab");
  CHECK(words_of(*bytes, {256, 'a', 257, 'b'}).texts[2] == " \u2192 ");  // from a source to its target
}

TEST_CASE("the mixing weights of pairs: sources are seen as a whole, targets from behind, other pairs not at all") {
  const TemporaryFolder folder;
  std::string pairs;
  for (int i = 0; i < 40; ++i) pairs += "red " + std::to_string(i) + " blue\tblue red\n";
  folder.write("pairs.tsv", pairs);
  std::ofstream(folder / "run.yaml")
      << "folder: " << folder.path() << "\nname: run\ndata: {type: pairs, train: [" << folder.path("pairs.tsv")
      << "], valid_fraction: 0.2, tokenizer: word, max_source: 8, max_length: 24}\nmodel: {type: language-model, "
         "prefix: bidirectional, width: 16, max_length: 24, layers: [{mixer: attention}]}\ntrain: {steps: 2}\n";
  set_log_sink([](LogLevel, std::string_view) {});
  const Run run = train(ConfigOptions{{folder.path("run.yaml")}, {}});
  const auto data = open_saved_data(run, Split::valid);
  set_log_sink({});
  const Batch example = example_of(*data, Split::valid);
  const ModelView view = view_of(run, example);
  REQUIRE(view.layers.size() == 1);
  const WeightMap& map = view.layers[0].weights.at(0).maps.at(0);
  REQUIRE(map.length > 12);  // two pairs or more
  std::vector<bool> in_source;
  bool reading = true;
  for (size_t t = 0; t < map.length; ++t) {
    const auto i = static_cast<int64_t>(t);
    if (t > 0 && example.segment_ids[i] != example.segment_ids[i - 1]) reading = true;
    in_source.push_back(reading);
    if (example.tokens[i] == run.tokenizer->vocabulary_size() + 1) reading = false;
  }
  for (size_t t = 0; t < map.length; ++t) {
    double sum = 0;
    for (size_t s = 0; s < map.length; ++s) {
      const bool same = example.segment_ids[static_cast<int64_t>(t)] == example.segment_ids[static_cast<int64_t>(s)];
      const bool seen = same && (s <= t || (in_source[t] && in_source[s]));
      REQUIRE(std::isfinite(map.at(t, s)) == seen);
      if (seen) sum += static_cast<double>(map.at(t, s));
    }
    CHECK(sum == doctest::Approx(1));
  }
}

}  // namespace
