#include <functional>
#include <set>

#include "core/base/error.hpp"
#include "data/labelled/class_names.hpp"
#include "labelled_support.hpp"

using namespace capstan;

TEST_CASE("labelled texts become examples") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = config_of({folder.write("train.tsv", "pos\tgood\nneg \tbad\npos\tfine\n")});
  config.test = {folder.write("test.jsonl", "{\"label\": \"neg\", \"text\": \"awful\"}\n")};
  const ClassificationData data = load_labelled(config);
  CHECK(data.classes == Fields{"neg", "pos"});
  REQUIRE(data.train.size() == 3);
  CHECK(data.train.label(0) == 1);
  CHECK(data.train.label(1) == 0);
  CHECK(text_of(data, data.train, 2) == "fine");
  CHECK(text_of(data, data.test, 0) == "awful");
  CHECK(data.valid.size() == 0);
  config.classes = {"pos", "neg"};
  CHECK(load_labelled(config).train.label(0) == 0);
  CHECK(load_labelled(config).fingerprint() != data.fingerprint());
}

TEST_CASE("long texts lose their tail or their head, empty ones are bad rows") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = config_of({folder.write("train.tsv", "a\tabcdef\nb\t\nb\txyz\n")});
  config.on_error = OnError::skip;
  config.max_length = 4;
  ClassificationData data = load_labelled(config);
  REQUIRE(data.train.size() == 2);
  CHECK(text_of(data, data.train, 0) == "abcd");
  CHECK(text_of(data, data.train, 1) == "xyz");
  config.truncate = Truncate::tail;
  data = load_labelled(config);
  CHECK(text_of(data, data.train, 0) == "cdef");
  config.max_length = 0;
  CHECK(text_of(load_labelled(config), load_labelled(config).train, 0) == "abcdef");
}

TEST_CASE("text pairs: a separator behind the vocabulary stands between the columns") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = config_of({folder.write("train.tsv", "yes\tab\tcd e\nno\t\tx\nno\tq q\t\n")});
  config.text_columns = {"2", "3"};
  const auto ids = [&](int64_t i) {
    const ClassificationData data = load_labelled(config);
    return data.train.tokens(i);
  };
  using Tokens = std::vector<int32_t>;
  CHECK(ids(0) == Tokens{'a', 'b', ' ', 'c', 'd', ' ', 'e'});
  config.separator = true;
  CHECK(ids(0) == Tokens{'a', 'b', 256, 'c', 'd', ' ', 'e'});
  CHECK(ids(1) == Tokens{256, 'x'});
  CHECK(ids(2) == Tokens{'q', ' ', 'q', 256});
  CHECK(load_labelled(config).tokenizer->vocabulary_size() + facts(config).added_tokens == 257);
  // The longest column loses tokens first, the separator stays.
  config.max_length = 6;
  CHECK(ids(0) == Tokens{'a', 'b', 256, 'c', 'd', ' '});
  config.max_length = 3;
  CHECK(ids(0) == Tokens{'a', 256, 'c'});
  config.truncate = Truncate::tail;
  CHECK(ids(0) == Tokens{'b', 256, 'e'});
  config.truncate = Truncate::error;
  CHECK(contains(message_of<Error>([&] { ids(0); }), "train.tsv:1: the text has 7 tokens, more than max_length = 3"));

  LabelledSourceConfig json = config_of({folder.write(
      "train.jsonl", "{\"label\": 1, \"a\": \"x y\", \"b\": \"z\"}\n{\"label\": 0, \"a\": \"\", \"b\": \"\"}\n")});
  json.text_columns = {"b", "a"};
  json.separator = true;
  CHECK(contains(message_of<Error>([&] { load_labelled(json); }), "train.jsonl:2: the text is empty"));
  json.on_error = OnError::skip;
  json.tokenizer = WordTokenizerConfig{};
  const ClassificationData words = load_labelled(json);
  REQUIRE(words.train.size() == 1);
  CHECK(words.train.length(0) == 4);
  CHECK(words.train.tokens(0)[1] == words.tokenizer->vocabulary_size());
}

TEST_CASE("text pairs: a separator needs columns and room") {
  LabelledSourceConfig config = config_of({"t.tsv"});
  config.separator = true;
  CHECK(problems_of(config) == "data.separator: needs at least two text_columns to separate");
  config.text_columns = {"2", "3"};
  CHECK(problems_of(config) == "");
  config.max_length = 3;
  CHECK(problems_of(config) == "");
  config.max_length = 2;
  CHECK(problems_of(config) == "data.max_length: 2 columns and their separators need 3 tokens or more");
}

TEST_CASE("a share of every class is held out, the same one every time") {
  const TemporaryFolder folder;
  std::string content;
  for (int i = 0; i < 200; ++i) content += (i % 10 == 0 ? "rare\t" : "often\t") + std::to_string(i) + "\n";
  content += "single\tone\n";
  LabelledSourceConfig config = config_of({folder.write("train.tsv", content)});
  config.valid_fraction = 0.1;
  const ClassificationData data = load_labelled(config);
  CHECK(data.valid.class_counts(3) == std::vector<int64_t>{18, 2, 0});
  CHECK(data.train.class_counts(3) == std::vector<int64_t>{162, 18, 1});
  CHECK(load_labelled(config).fingerprint() == data.fingerprint());
  // Together they are the whole, each example once.
  std::multiset<std::string> texts;
  for (const ExampleSet* set : {&data.train, &data.valid})
    for (int64_t i = 0; i < set->size(); ++i) texts.insert(text_of(data, *set, i));
  std::multiset<std::string> all{"one"};
  for (int i = 0; i < 200; ++i) all.insert(std::to_string(i));
  CHECK(texts == all);
}

TEST_CASE("folds hold out every example once, and have equal shares of every class") {
  const TemporaryFolder folder;
  std::string content;
  for (int i = 0; i < 103; ++i) content += (i % 10 == 0 ? "rare\t" : "often\t") + std::to_string(i) + "\n";
  content += "single\tone\n";
  LabelledSourceConfig config = config_of({folder.write("train.tsv", content)});
  config.folds = 5;
  std::multiset<std::string> held;
  for (config.fold = 0; config.fold < config.folds; ++config.fold) {
    const ClassificationData data = load_labelled(config);
    CHECK(data.train.size() + data.valid.size() == 104);
    CHECK(data.classes.size() == 3);
    const std::vector<int64_t> counts = data.valid.class_counts(3);
    CHECK((counts[0] == 18 || counts[0] == 19));  // of 92
    CHECK((counts[1] == 2 || counts[1] == 3));    // of 11
    for (int64_t i = 0; i < data.valid.size(); ++i) held.insert(text_of(data, data.valid, i));
  }
  std::multiset<std::string> all{"one"};
  for (int i = 0; i < 103; ++i) all.insert(std::to_string(i));
  CHECK(held == all);
  config.fold = 0;
  config.folds = 1000;
  CHECK_THROWS_WITH_AS(load_labelled(config), "data.folds: 104 examples are too few for 1000 folds; lower it",
                       ConfigError);
}

TEST_CASE("a share of the training examples has the classes' shares, and lies within larger shares") {
  const TemporaryFolder folder;
  std::string rows;
  for (int i = 0; i < 100; ++i) rows += (i % 4 == 0 ? "rare\t" : "usual\t") + std::to_string(i) + "\n";
  LabelledSourceConfig config = config_of({folder.write("train.tsv", rows + "once\tone\n")});
  const auto texts = [&](double fraction) {
    config.train_fraction = fraction;
    const ClassificationData data = load_labelled(config);
    std::vector<std::string> all;
    for (int64_t i = 0; i < data.train.size(); ++i) all.push_back(text_of(data, data.train, i));
    return std::pair(all, data.train.class_counts(3));
  };
  const auto [tenth, tenth_counts] = texts(0.1);
  CHECK(tenth_counts == std::vector<int64_t>{1, 3, 8});
  const auto [half, half_counts] = texts(0.5);
  CHECK(half_counts == std::vector<int64_t>{1, 13, 38});
  const auto in_half = [&half = half](const std::string& text) {
    return std::count(half.begin(), half.end(), text) == 1;
  };
  CHECK(std::all_of(tenth.begin(), tenth.end(), in_half));
  CHECK(texts(1).first.size() == 101);
  config.folds = 4;
  CHECK(texts(0.1).second == std::vector<int64_t>{1, 2, 6});
  CHECK(load_labelled(config).valid.size() == 25);  // held out before
}

TEST_CASE("the vocabulary comes from training texts alone, or from an earlier run") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = config_of({folder.write("train.tsv", "a\tred green\nb\tred\n")});
  config.valid = {folder.write("valid.tsv", "a\tblue red\n")};
  config.tokenizer = WordTokenizerConfig{};
  const ClassificationData data = load_labelled(config);
  CHECK(data.tokenizer->vocabulary_size() == 4);
  CHECK(text_of(data, data.valid, 0) == "<unk> red");
  config.train = {folder.write("other.tsv", "a\tblue\nb\tred\n")};
  CHECK(load_labelled(config, data.tokenizer).train.tokens(0)[0] == 0);
}

TEST_CASE("one label, or none, is enough where no model classifies") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = config_of({folder.write("t.tsv", "a\tx\na\ty\n")});
  CHECK(load_labelled(config, nullptr, false).classes == Fields{"a"});
  config.classes = {"a", "b"};
  CHECK(load_labelled(config, nullptr, false).train.size() == 2);
  config.classes.clear();
  config.multi_label = true;
  CHECK(load_labelled(config, nullptr, false).classes == Fields{"a"});
  config.train = {folder.write("none.tsv", "\tx\n\ty\n")};
  CHECK(load_labelled(config, nullptr, false).train.size() == 2);
}

TEST_CASE("a label that formats write differently is one class, and two that look alike are pointed out") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = config_of({folder.write("t.csv", "True,x\nFalse,y\nTrue,z\n")});
  config.test = {folder.write("t.jsonl", "{\"label\": true, \"text\": \"a\"}\n{\"label\": false, \"text\": \"b\"}\n")};
  CHECK(load_labelled(config).test.class_counts(2) == std::vector<int64_t>{1, 1});
  config.train = {folder.write("floats.csv", "1.0,x\n0.0,y\n")};
  config.test = {folder.write("numbers.jsonl", "{\"label\": 1, \"text\": \"a\"}\n{\"label\": 0.0, \"text\": \"b\"}\n")};
  const ClassificationData floats = load_labelled(config);
  CHECK(floats.classes == Fields{"0.0", "1.0"});
  CHECK(floats.test.label(0) == 1);
  config.train = {folder.write("both.csv", "1.0,x\n1,y\n0,z\n")};
  config.test.clear();
  const ClassificationData both = load_labelled(config);
  CHECK(both.classes.size() == 3);  // not joined without a word
  REQUIRE(both.warnings.size() == 1);
  CHECK(both.warnings[0].check == "alike-labels");
  config.train = {folder.write("alike.tsv",
                               "Good day\tx\ngood\xc2\xa0"
                               "day\ty\nbad\tz\n")};
  const auto warnings = load_labelled(config).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(contains(warnings[0].message, "'Good day' (1) and 'good\\u00a0day' (1)"));
  config.train = {folder.write("versions.csv", "1.0,x\n1.1,y\n2.0,z\n")};
  CHECK(load_labelled(config).classes == Fields{"1.0", "1.1", "2.0"});
  CHECK(load_labelled(config).warnings.empty());
}
