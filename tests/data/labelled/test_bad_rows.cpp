// Rows that cannot be used, and files as they are found in the wild.
#include <functional>

#include "core/base/error.hpp"
#include "labelled_support.hpp"

using namespace capstan;

using Fields = std::vector<std::string>;

TEST_CASE("all rows that cannot be used are named together, three of a kind, with their count") {
  const TemporaryFolder folder;
  std::string content = "a\tx\nb\ty\nc\n";
  for (int i = 0; i < 11; ++i) content += "d\tz\n";
  LabelledSourceConfig config = config_of({folder.write("t.tsv", content)});
  config.classes = {"a", "b"};
  config.test = {folder.write("u.jsonl", "{\"label\": \"a\"}\n")};
  const std::string message = message_of<Error>([&] { load_labelled(config); });
  check_contains(message, {"t.tsv:3: too few columns", "u.jsonl:1: no key 'text'", "t.tsv:4: unknown label 'd'",
                           "t.tsv:6: unknown label 'd'"});
  CHECK_FALSE(contains(message, "t.tsv:7:"));
  CHECK(contains(message,
                 "... and 8 more\ndata: 13 rows cannot be used: correct them, or leave them out with "
                 "data.on_error: skip"));
}

TEST_CASE("on_error: skip leaves out the rows that cannot be used and counts them") {
  struct Row {
    const char* what;
    std::string name, content;
    std::vector<std::string> kept;
    std::string left_out;
    std::function<void(LabelledSourceConfig&)> change;
  };
  const auto nothing = [](LabelledSourceConfig&) {};
  for (const Row& row : std::vector<Row>{
           {"columns", "t.tsv", "a\tx\nb\nb\ty\n", {"x", "y"}, "1 row left out (on_error: skip), the first: ", nothing},
           {"label",
            "t.tsv",
            "a\tx\nc\tz\nb\ty\n",
            {"x", "y"},
            "t.tsv:2: unknown label 'c'",
            [](auto& c) {
              c.classes = {"a", "b"};
            }},
           {"an empty label", "t.tsv", "a\tx\n\tz\nb\ty\n", {"x", "y"}, "t.tsv:2: the label is empty", nothing},
           {"too many columns", "t.csv", "a,x\na,v, w\nb,y\n", {"x", "y"}, "t.csv:2: too many columns", nothing},
           {"UTF-8",
            "t.tsv",
            "a\tx\nb\ty\nb\t\xff\n",
            {"x", "y"},
            "t.tsv:3:3: byte 0xff",
            [](auto& c) { c.tokenizer = CharTokenizerConfig{}; }},
           {"UTF-8 in CSV",
            "t.csv",
            "a,x\nb,\"y\n\xff\"\nb,z\n",
            {"x", "z"},
            "t.csv:3:1: byte 0xff",
            [](auto& c) { c.tokenizer = CharTokenizerConfig{}; }},
           {"bytes read anything", "t.tsv", "a\tx\nb\t\xff\n", {"x", "\xff"}, "", nothing},
           {"JSON",
            "t.jsonl",
            "{\"label\": 1, \"text\": \"x\"}\n{\n[]\n{\"label\": 2, \"text\": \"y\"}\n",
            {"x", "y"},
            "2 rows left out",
            nothing},
           {"quotes", "t.csv", "a,x\nb,\"no\" way\nb,y\na,\"open\nb,z\n", {"x", "y", "z"}, "2 rows left out", nothing},
           {"quotes of the first row", "t.csv", "a,\"no\" way\na,x\nb,y\n", {"x", "y"}, "1 row left out", nothing},
           {"empty", "t.tsv", "a\tx\nb\t\nb\ty\n", {"x", "y"}, "t.tsv:2: the text is empty", nothing},
           {"empty, on request",
            "t.tsv",
            "a\tx\nb\t\nb\ty\n",
            {"x", "y"},
            "left out 1 texts without tokens",
            [](auto& c) { c.skip_empty = true; }},
           {"too long", "t.tsv", "a\tx\nb\tlong\nb\ty\n", {"x", "y"}, "more than max_length = 3", [](auto& c) {
              c.max_length = 3;
              c.truncate = Truncate::error;
            }}}) {
    const TemporaryFolder folder;
    LabelledSourceConfig config = config_of({folder.write(row.name, row.content)});
    config.on_error = OnError::skip;
    row.change(config);
    const ClassificationData data = load_labelled(config);
    std::vector<std::string> kept;
    for (int64_t i = 0; i < data.train.size(); ++i) kept.push_back(text_of(data, data.train, i));
    CHECK_MESSAGE(kept == row.kept, row.what);
    CHECK_MESSAGE(data.left_out.size() == (row.left_out.empty() ? 0 : 1), row.what);
    if (!row.left_out.empty())
      CHECK_MESSAGE(contains(data.left_out[0], row.left_out), row.what, ": ", data.left_out[0]);
  }
}

TEST_CASE("labels and class folders that are not UTF-8 are bad rows, named with their bytes") {
  const TemporaryFolder folder;
  folder.write("folders/a/1.txt", "x");
  folder.write("folders/b/1.txt", "y");
  folder.write("folders/caf\xe9/1.txt", "z");
  LabelledSourceConfig folders = config_of({folder.path() + "/folders"});
  folders.format = "folders";
  for (const auto& [config, said] : {std::pair(config_of({folder.write("t.tsv", "a\tx\ncaf\xe9\tz\nb\ty\n")}),
                                               "t.tsv:2: the label 'caf\\xe9' is not valid UTF-8; convert the file"),
                                     {folders, "1.txt: the class in its path 'caf\\xe9' is not valid UTF-8"}}) {
    LabelledSourceConfig skipping = config;
    CHECK(contains(message_of<Error>([&] { load_labelled(skipping); }), said));
    skipping.on_error = OnError::skip;
    const ClassificationData data = load_labelled(skipping);
    CHECK(data.classes == std::vector<std::string>{"a", "b"});
    REQUIRE(data.left_out.size() == 2);
    CHECK(contains(data.left_out[0], said));
    CHECK(contains(data.left_out[1], "there is no class"));
  }
}

TEST_CASE("on_error: skip does not help a wrong configuration, nor data without a usable row") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = config_of({folder.write("t.csv", "label,text\na,x\nb,y\n")});
  config.on_error = OnError::skip;
  config.header = true;
  config.text_columns = {"body"};
  CHECK(contains(message_of<Error>([&] { load_labelled(config); }), "no column is called 'body'"));
  config.text_columns = {"7"};
  CHECK(contains(message_of<Error>([&] { load_labelled(config); }), "t.csv: no row has usable text"));
  LabelledSourceConfig skipping = config_of({folder.write("t.jsonl", "{\"text\": \"a\"}\n")});
  skipping.on_error = OnError::skip;
  CHECK(contains(message_of<Error>([&] { load_labelled(skipping); }), "t.jsonl:1: no key 'label'"));  // and says why
}

TEST_CASE("files as they come: AG News, DBpedia and Yelp (CSV), SST (TSV), ListOps of the Long Range Arena") {
  const TemporaryFolder folder;
  LabelledSourceConfig news = config_of({folder.write(
      "ag.csv", "\"3\",\"Oil, again\",\"Prices \"\"rose\"\".\"\n\"1\",\"Talks\",\"They met\\in June.\"\n")});
  news.text_columns = {"2", "3"};
  news.classes = {"World", "Sports", "Business", "Sci/Tech"};
  news.first_label = 1;
  const ClassificationData ag = load_labelled(news);
  REQUIRE(ag.train.size() == 2);
  CHECK(text_of(ag, ag.train, 0) == "Oil, again Prices \"rose\".");
  CHECK(ag.train.label(0) == 2);
  CHECK(text_of(ag, ag.train, 1) == "Talks They met\\in June.");
  CHECK(ag.train.label(1) == 0);
  news.classes.clear();
  CHECK(load_labelled(news).classes == Fields{"1", "3"});

  LabelledSourceConfig yelp = config_of({folder.write("yelp.csv", "\"2\",\"Good.\\n\\nReally.\"\n\"1\",\"No\"\n")});
  CHECK(text_of(load_labelled(yelp), load_labelled(yelp).train, 0) == "Good.\\n\\nReally.");

  LabelledSourceConfig sst = config_of({folder.write("sst.tsv", "sentence\tlabel\na \"quoted\" joy \t1\ndull \t0\n")});
  sst.header = true;
  sst.label_column = "label";
  sst.text_columns = {"sentence"};
  const ClassificationData reviews = load_labelled(sst);
  CHECK(text_of(reviews, reviews.train, 0) == "a \"quoted\" joy ");
  CHECK(reviews.train.label(0) == 1);

  LabelledSourceConfig lra = config_of({write_zstd(
      folder, "basic_train.tsv.zst", "Source\tTarget\n( ( ( [MAX 2 ) 9 ) ] )\t9\n( ( ( [MIN 4 ) 7 ) ] )\t4\n")});
  lra.header = true;
  lra.label_column = "Target";
  lra.text_columns = {"Source"};
  lra.tokenizer = WordTokenizerConfig{};
  const ClassificationData lists = load_labelled(lra);
  CHECK(lists.classes == Fields{"4", "9"});
  CHECK(text_of(lists, lists.train, 0) == "( ( ( [MAX 2 ) 9 ) ] )");
  CHECK(lists.train.length(1) == 10);
}
