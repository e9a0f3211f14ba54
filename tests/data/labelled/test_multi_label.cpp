// Texts with any number of labels: what the formats hold, what batches are made of, and what cannot be used.
#include "core/base/error.hpp"
#include "data/formats/row_labels.hpp"
#include "labelled_support.hpp"

using namespace capstan;

namespace {

using Names = std::vector<std::string>;

LabelledSourceConfig several(std::vector<std::string> train, const std::string& format = format_by_name) {
  LabelledSourceConfig config = config_of(std::move(train));
  config.multi_label = true;
  config.format = format;
  return config;
}

Names names_of(const ClassificationData& data, const ExampleSet& examples, int64_t i) {
  Names names;
  for (const int32_t label : examples.labels(i)) names.push_back(data.classes[static_cast<size_t>(label)]);
  return names;
}

}  // namespace

TEST_CASE("several labels per text: all formats hold the same") {
  struct Row {
    std::string name, content;
    const char* keys = "";
  };
  const TemporaryFolder folder;
  std::string fingerprint;
  for (const Row& row : std::vector<Row>{
           {"t.tsv", "red, blue\tone\n\ttwo\ngreen\tthree four\nblue,red,green\tfive\n"},
           {"t.csv", "\"red,blue\",one\n,two\ngreen,three four\n\"blue,red,green\",five\n"},
           {"u.tsv", "one\tred|blue\ntwo\t\nthree four\tgreen\nfive\tblue|red|green\n",
            "label_column=2 text_columns=1 label_separator=|"},
           {"v.tsv", "red blue\tone\n \ttwo\ngreen\tthree four\nblue  red green\tfive\n", "label_separator=blank"},
           {"t.jsonl",
            "{\"labels\": [\"red\", \"blue\"], \"text\": \"one\"}\n{\"labels\": [], \"text\": \"two\"}\n"
            "{\"labels\": \"green\", \"text\": \"three four\"}\n{\"labels\": \"blue, red,green\", \"text\": "
            "\"five\"}\n"},
           {"list.csv", "\"['red', 'blue']\",one\n[],two\n\"[\"\"green\"\"]\",three four\n\"blue,red,green\",five\n"},
           {"twice.tsv", "red, blue,red\tone\n\ttwo\ngreen\tthree four\nblue,red,green\tfive\n"},
           {"flags.csv", "words,blue,green,red\none,1,0,1\ntwo,0,0,0\nthree four,0.0,1.0,0.0\nfive,true,True,1\n",
            "header=true text_columns=words label_columns=blue,green,red"},
           {"flags.jsonl",
            "{\"t\": \"one\", \"blue\": 1, \"green\": 0, \"red\": true}\n{\"t\": \"two\", \"blue\": 0, \"green\": "
            "false, "
            "\"red\": \"0\"}\n{\"t\": \"three four\", \"blue\": 0, \"green\": 1.0, \"red\": 0}\n{\"t\": \"five\", "
            "\"blue\": "
            "1, \"green\": 1, \"red\": 1}\n",
            "text_columns=t label_columns=blue,green,red"},
           {"t.txt",
            "__label__red __label__blue one\ntwo\nthree four __label__green\n__label__blue\t__label__red five "
            "__label__green \n",
            "format=fasttext"},
       }) {
    INFO(row.name);
    const ClassificationData data = load_labelled(with_keys(several({folder.write(row.name, row.content)}), row.keys));
    CHECK(data.classes == Names{"blue", "green", "red"});
    REQUIRE(data.train.size() == 4);
    CHECK(names_of(data, data.train, 0) == Names{"blue", "red"});
    CHECK(names_of(data, data.train, 1).empty());
    CHECK(names_of(data, data.train, 2) == Names{"green"});
    CHECK(names_of(data, data.train, 3) == data.classes);
    CHECK(text_of(data, data.train, 2) == "three four");
    CHECK(text_of(data, data.train, 3) == "five");
    CHECK(data.train.class_counts(3) == std::vector<int64_t>{2, 2, 2});
    CHECK(data.train.label_count() == 6);
    if (fingerprint.empty()) fingerprint = data.fingerprint();
    CHECK(data.fingerprint() == fingerprint);
  }
}

TEST_CASE("several labels per text: batches have a row of zeros and ones for each text") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = several({folder.write("t.tsv", "a,c\tone\n\ttwo\nb\tthree\na,b,c\tfour\nc\tfive\n")});
  config.valid = {folder.write("v.tsv", "c\tlonger\n\tx\n")};
  SourceInputs inputs;
  inputs.batches = {2, 0};
  const auto source = make_source(config, inputs);
  const auto valid = source->evaluation(Split::valid);
  const Batch batch = valid->batch(0, 0);
  CHECK(batch.labels.shape() == Shape{2, 3});
  CHECK(batch.labels.to_vector() == std::vector<int32_t>{0, 0, 1, 0, 0, 0});
  CHECK(source->class_counts() == std::vector<int64_t>{2, 2, 3});
  std::vector<int64_t> counts(3, 0);
  for (int64_t i = 0; i < source->training().batches_per_epoch(0); ++i) {
    const Batch whole = source->training().batch(0, i);
    const int64_t rows = whole.labels.dim(0);
    CHECK(whole.labels.dim(1) == 3);
    for (int64_t at = 0; at < whole.labels.size(); ++at) counts[static_cast<size_t>(at % 3)] += whole.labels[at];
    const Batch last = source->training().rows(0, i, rows - 1, rows);
    CHECK(last.labels.to_vector() == whole.labels.rows(rows - 1, rows).to_vector());
  }
  CHECK(counts == source->class_counts());
  CHECK(contains(source->description().at(1), "train: 5 examples of 3 classes with 1.40 labels each"));
}

TEST_CASE("several labels per text: classes may be named, and texts are held out whatever their labels") {
  const TemporaryFolder folder;
  std::string rows;
  for (int i = 0; i < 40; ++i)
    rows += (i % 3 == 0 ? "0" : i % 3 == 1 ? "1,world news" : "") + fmt::format("\ttext {}\n", i);
  LabelledSourceConfig config = several({folder.write("t.tsv", rows)});
  config.classes = {"sport", "money", "world news", "never"};
  config.valid_fraction = 0.25;
  const ClassificationData data = load_labelled(config);
  CHECK(data.train.size() == 30);
  CHECK(data.valid.size() == 10);
  CHECK(data.classes == config.classes);
  const auto train = data.train.class_counts(4), valid = data.valid.class_counts(4);
  CHECK(train[0] + valid[0] == 14);
  CHECK(train[1] + valid[1] == 13);
  CHECK(train[1] == train[2]);
  CHECK(train[3] == 0);
}

TEST_CASE("lines of fastText with one label each") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = config_of({folder.write("t.txt", "__label__a x y\n__label__b  z\n\nw __label__a\n")});
  config.format = "fasttext";
  const ClassificationData data = load_labelled(config);
  CHECK(data.classes == Names{"a", "b"});
  REQUIRE(data.train.size() == 3);
  CHECK(text_of(data, data.train, 0) == "x y");
  CHECK(text_of(data, data.train, 2) == "w");
  config.train = {folder.write("u.txt", "__label__a __label__b x\ny\n__label__ z\n__label__b v\n__label__a w\n")};
  const std::string message = message_of<Error>([&] { load_labelled(config); });
  check_contains(message, {"u.txt:1: found 2 labels (words that begin with __label__) instead of one; for any number",
                           "set data.multi_label: true", "u.txt:2: found 0 labels", "u.txt:3: the label is empty"});
}

TEST_CASE("a label that a text names twice counts once") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = several({folder.write("t.tsv", "a,b\tx\nb, b\ty\n")});
  const ClassificationData data = load_labelled(config);
  CHECK(names_of(data, data.train, 1) == Names{"b"});
  config.classes = {"a", "b"};
  config.train = {folder.write("u.tsv", "a\tx\nb,1\ty\n")};  // by name and number
  const ClassificationData named = load_labelled(config);
  CHECK(names_of(named, named.train, 1) == Names{"b"});
}

TEST_CASE("lists of labels are read as JSON and Python write them") {
  const auto labels = [](const char* text) { return split_labels(text, ","); };
  CHECK(labels(R"(["it's", 'b'])") == Names{"it's", "b"});
  CHECK(labels(R"(['it\'s', 'say "no"'])") == Names{"it's", "say \"no\""});
  CHECK(labels(R"(["say \"no\"", 'a\\b'])") == Names{"say \"no\"", "a\\b"});
  CHECK(labels(" [1, 20] ") == Names{"1", "20"});
  CHECK(labels("[]").empty());
  CHECK(labels("[urgent],[spam]") == Names{"[urgent]", "[spam]"});  // labels in brackets
  for (const char* const none : {"[1.5]", "['a]", "[a]", "['a' 'b']", "[['a']]", "a", "", "["})
    CHECK_FALSE_MESSAGE(listed_labels(none), none);
}

TEST_CASE("keys of several labels that do not fit together") {
  const auto problems = [](const char* keys) { return problems_of(with_keys(several({"t.tsv"}), keys)); };
  CHECK(problems("").empty());
  CHECK(contains(problems("format=folders"),
                 "data.multi_label: with format: folders, a text has the label of its folder"));
  CHECK(contains(problems("multi_label=false label_separator=;"), "data.label_separator: needs multi_label: true"));
  LabelledSourceConfig tab = several({"t.tsv"});
  tab.label_separator = "\t";
  CHECK(contains(problems_of(tab), "must not contain tabs or line breaks"));
  CHECK(contains(problems("format=fasttext label_column=2"), "data.format: fasttext lines have no columns"));
}

TEST_CASE("data check counts texts by their number of labels, and notices a wrong separator") {
  const TemporaryFolder folder;
  std::string rows = "a,b,c\ttext\n", semicolons;
  for (int i = 0; i < 30; ++i) {
    rows += (i % 2 == 0 ? "a,b" : "") + fmt::format("\ttext {}\n", i);
    semicolons += (i % 2 == 0 ? "a;b" : "b;c") + fmt::format("\ttext {}\n", i);
  }
  rows += "c\ttext 3\n";  // a copy with other labels
  const DataReport report = check_source(several({folder.write("t.tsv", rows)}), {});
  const auto table =
      std::find_if(report.tables.begin(), report.tables.end(), [](const DataTable& t) { return t.name == "labels"; });
  REQUIRE(table != report.tables.end());
  CHECK(table->rows == std::vector<std::vector<DataTable::Cell>>{{int64_t{0}, int64_t{15}, int64_t{0}, int64_t{0}},
                                                                 {int64_t{1}, int64_t{1}, int64_t{0}, int64_t{0}},
                                                                 {int64_t{2}, int64_t{15}, int64_t{0}, int64_t{0}},
                                                                 {int64_t{3}, int64_t{1}, int64_t{0}, int64_t{0}}});
  const auto classes =
      std::find_if(report.tables.begin(), report.tables.end(), [](const DataTable& t) { return t.name == "classes"; });
  REQUIRE(classes != report.tables.end());
  CHECK(std::get<int64_t>(classes->rows.at(0).at(1)) == 16);
  const auto noise = std::find_if(report.tables.begin(), report.tables.end(),
                                  [](const DataTable& t) { return t.name == "label_noise"; });
  REQUIRE(noise != report.tables.end());
  CHECK(std::get<std::string>(noise->rows.at(0).at(3)) == "c");
  const auto joined = [&](LabelledSourceConfig config) {
    config.multi_label = false;
    config.label_separator = ",";
    for (const DataWarning& w : check_source(config, {}).warnings)
      if (std::string(w.check) == "joined-labels") return w.message;
    return std::string();
  };
  std::string all;  // rows of at least one label
  for (int i = 0; i < 30; ++i) all += fmt::format("{}\ttext {}\n", i % 2 == 0 ? "a,b" : i % 3 == 0 ? "a,c" : "c", i);
  CHECK(contains(joined(several({folder.write("j.tsv", all)})), "set data.multi_label=true"));
  CHECK(contains(joined(several({folder.write("s.tsv", semicolons + "c;d\tx\n")})), "'data.label_separator=\";\"'"));
  std::string one_of_three;  // a single joined class beside its parts
  for (int i = 0; i < 30; ++i)
    one_of_three += fmt::format("{}\ttext {}\n", i % 5 == 0 ? "a,b" : i % 2 == 0 ? "a" : "b", i);
  CHECK(contains(joined(several({folder.write("p.tsv", one_of_three)})),
                 "1 of 3 classes is several labels joined by ','"));
  std::string names;
  for (int i = 0; i < 30; ++i) names += (i % 2 == 0 ? "Smith, John" : "Doe, Jane") + fmt::format("\ttext {}\n", i);
  CHECK(joined(several({folder.write("n.tsv", names)})).empty());
}
