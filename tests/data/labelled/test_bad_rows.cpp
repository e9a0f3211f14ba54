// Rows that cannot be used, and files as they are found in the wild.
#include "core/base/error.hpp"
#include "labelled_support.hpp"

using namespace capstan;

namespace {

/// A file with a bad row: what is said of it, and, where it is given, what stays with on_error: skip.
struct BadFile {
  std::string what, name, content, message, keys = "";
  std::optional<Fields> kept = std::nullopt;
  std::string test = "";  // the content of test.tsv
};

const std::string json = R"({"label": 1, "text": "x"})";

const std::vector<BadFile> bad_files = {
    {"too few columns", "t.tsv", "a\tx\nb\nb\ty\n", "t.tsv:2: too few columns: found 1", "", Fields{"x", "y"}},
    {"too few for the choice", "t.tsv", "a\tx\nb\ty\n",
     "t.tsv:1: too few columns: found 2, but the label is column 1 and the text column 3", "text_columns=3"},
    {"label and text are one", "t.tsv", "a\tx\nb\ty\n", "t.tsv: column 2 is both the label and the text",
     "label_column=2"},
    {"name without header", "t.tsv", "a\tx\nb\ty\n", "column 'label' is not a number", "label_column=label"},
    {"unknown name", "t.csv", "label,text\na,x\n",
     "t.csv:1: no column is called 'body'; the first row has: label, text", "header=true text_columns=body"},
    {"unknown label", "t.tsv", "a\tx\nc\tz\nb\ty\n", "t.tsv:2: unknown label 'c'", "classes=a,b", Fields{"x", "y"}},
    {"one class", "t.tsv", "a\tx\na\ty\n", "all 2 examples have the label 'a'; a classifier needs at least two"},
    {"one class named", "t.tsv", "0\tx\n0\ty\n", "all 2 examples have the label '0'; a classifier needs at least two",
     "classes=a"},
    {"one class of two", "t.tsv", "a\tx\na\ty\n", "all 2 examples have the label 'a'", "classes=a,b"},
    {"empty text", "t.tsv", "a\tx\nb\t\nb\ty\n", "t.tsv:2: the text is empty", "", Fields{"x", "y"}},
    {"blank text", "t.tsv", "a\tx\nb\t  \n", "t.tsv:2: the text is empty", "tokenizer=word"},
    {"too long", "t.tsv", "a\tx\nb\tlonger\nb\ty\n", "t.tsv:2: the text has 6 tokens, more than max_length = 5",
     "max_length=5 truncate=error", Fields{"x", "y"}},
    {"char mode", "t.tsv", "a\tx\nb\ty\nb\t\xff\n", "t.tsv:3:3: byte 0xff", "tokenizer=char", Fields{"x", "y"}},
    {"word mode", "t.tsv", "a\tx\nb\t\xff\n", "t.tsv:2:3: byte 0xff", "tokenizer=word"},
    {"bytes in CSV", "t.csv", "a,x\nb,\"y\n\xff\"\nb,z\n", "t.csv:3:1: byte 0xff", "tokenizer=char", Fields{"x", "z"}},
    {"bad JSON", "t.jsonl", json + "\n{\"label\": 1,\n", "t.jsonl:2:13: not JSON: syntax error"},
    {"two bad lines", "t.jsonl", json + "\n{\n[]\n{\"label\": 2, \"text\": \"y\"}\n", "t.jsonl:2", "",
     Fields{"x", "y"}},
    {"no object", "t.jsonl", "[1, 2]\n", "t.jsonl:1: every line must be a JSON object"},
    {"no key", "t.jsonl", R"({"label": 1, "body": "x"})", "t.jsonl:1: no key 'text'; found: body, label"},
    {"wrong type", "t.jsonl", R"({"label": 1.5, "text": "x"})",
     "t.jsonl:1: 'label' must be a string, a whole number, true or false, found 1.5"},
    {"an empty label", "t.csv", "a,x\n,y\nb,z\n", "t.csv:2: the label is empty", "", Fields{"x", "z"}},
    {"a blank label", "t.tsv", "a\tx\n \ty\n", "t.tsv:2: the label is empty"},
    {"quotes without a label", "t.tsv", "a\tx\n\"\"\ty\n", "t.tsv:2: the label is empty"},
    {"an empty label in JSON", "t.jsonl", R"({"label": "", "text": "x"})", "t.jsonl:1: the label is empty"},
    {"null in JSON", "t.jsonl", R"({"label": null, "text": "x"})", "t.jsonl:1: the label is empty"},
    {"no label in fastText", "t.txt", "__label__a x\ny\n", "t.txt:2: found 0 labels", "format=fasttext"},
    {"an empty label in the test data", "t.tsv", "a\tx\nb\ty\n", "test.tsv:1: the label is empty", "", std::nullopt,
     "\tx\na\ty\n"},
    {"too many columns", "t.csv", "text,label\nx,a\ny, too,b\n",
     "t.csv:3: too many columns: found 3, but the header has 2; quote fields that contain commas", "header=true"},
    {"of most rows", "t.tsv", "a\tx\tz\nb\ty\nb\tv\n",
     "t.tsv:1: too many columns: found 3, but most rows have 2; a field of tsv holds no tab"},
    {"without a header", "t.csv", "a,x\na,v, w\nb,y\n", "t.csv:2: too many columns", "", Fields{"x", "y"}},
    {"with semicolons", "t.csv", "label;text\na;x\nb;y; z\na;v\nb;w\n",
     "t.csv:3: too many columns: found 3, but the header has 2; quote fields that contain semicolons", "header=true"},
    {"too few columns below a header", "t.csv", "label,text,id\na,x,1\nb,y\n",
     "t.csv:3: too few columns: found 2, but the header has 3", "header=true"},
    {"one name of two columns", "t.csv", "label,text,text\na,x,y\n",
     "t.csv:1: the columns 2 and 3 are called 'text'; choose one by its number with", "header=true text_columns=text"},
    {"a flag", "t.csv", "text,a,b\nx,1,0\ny,2,0\n",
     "t.csv:3: column 'a' of data.label_columns must be 0 or 1, found '2'",
     "header=true text_columns=text label_columns=a,b"},
    {"no flag and two", "t.csv", "text,a,b\nx,1,1\ny,0,1\nz,1,0\n", "t.csv:2: found 2 labels instead of one",
     "header=true text_columns=text label_columns=a,b"},
    {"flags without a header", "t.csv", "x,1,0\n", "data.label_columns: the names of the columns are the labels",
     "label_columns=2,3"},
    {"text is no string", "t.jsonl", R"({"label": 1, "text": 7})", "t.jsonl:1: 'text' must be a string, found 7"},
    {"bytes in JSON", "t.jsonl", "{\"label\": 1, \"text\": \"\xff\"}\n", "t.jsonl:1:23: not JSON"},
    {"open quote", "t.csv", "a,x\nb,\"y\n", "t.csv:2: a quoted field is not closed"},
    {"quotes", "t.csv", "a,x\nb,\"no\" way\nb,y\na,\"open\nb,z\n", "t.csv:2: ", "", Fields{"x", "y", "z"}},
    {"quotes of the first row", "t.csv", "a,\"no\" way\na,x\nb,y\n", "t.csv:1: ", "", Fields{"x", "y"}},
    {"only a header", "t.csv", "label,text\n", "t.csv: holds no examples", "header=true"},
    {"only empty lines", "t.tsv", "\n\n", "t.tsv: holds no examples"},
    {"an object over lines", "t.jsonl", "{\n  \"data\": [\n    {\"label\": 1, \"text\": \"x\"}\n  ]\n}\n",
     "t.jsonl:1: an object that goes over several lines; a file has one object in each line"},
    {"line ends of old Macs", "t.tsv", "a\tx\rb\ty\r", "t.tsv: its lines end in CR alone, as on old Macs"},
    {"a table read as fastText", "t.tsv", "a\tx\nb\ty\n",
     "but no word begins with __label__; for a table set data.format=auto", "format=fasttext"},
    {"unknown ending", "t.data", "a\tx\n", "t.data: the name does not show the format"},
    {"empty", "t.tsv", "", "t.tsv: the file is empty"},
    // Several labels per text.
    {"an empty one", "t.tsv", "a,,b\tx\n", "t.tsv:1: label 2 of 3 is empty", "multi_label=true"},
    {"a separator at the end", "t.tsv", "a,b,\tx\n", "t.tsv:1: label 3 of 3 is empty", "multi_label=true"},
    {"a list without quotes", "t.tsv", "['a']\tx\n[a, b]\ty\n",
     "t.tsv:2: the labels look like a list, but not as JSON or Python write it: [a, b]; quote each of them",
     "multi_label=true"},
    {"a list without commas", "t.tsv", "['a' 'b']\ty\n", "t.tsv:1: the labels look like a list", "multi_label=true"},
    {"a list of lists", "t.tsv", "[['a'], ['b']]\ty\n", "t.tsv:1: the labels look like a list", "multi_label=true"},
    {"an unknown one", "t.tsv", "a\tx\na,c\ty\n", "t.tsv:2: unknown label 'c'; known: a, b",
     "multi_label=true classes=a,b"},
    {"an unknown one in test", "t.tsv", "sport,money\tx\n\ty\n",
     "test.tsv:2: unknown label 'sports', did you mean 'sport'?", "multi_label=true", std::nullopt,
     "money\tx\nmoney,sports\ty\n"},
    {"no list", "t.jsonl", R"({"labels": 1.5, "text": "x"})",
     "t.jsonl:1: 'labels' must be a string, a whole number, true or false, found 1.5", "multi_label=true"},
    {"a list of lists in JSON", "t.jsonl", R"({"labels": [["a"]], "text": "x"})",
     "t.jsonl:1: label 1 in 'labels' must be a string, a whole number, true or false, found a list of 1",
     "multi_label=true"},
    {"no value", "t.jsonl", R"({"labels": null, "text": "x"})",
     "t.jsonl:1: 'labels' must be a string, a whole number, true or false, found null", "multi_label=true"},
    {"no key of several", "t.jsonl", R"({"label": ["a"], "text": "x"})", "no key 'labels'; found: label, text",
     "multi_label=true"},
    {"a list without multi_label", "t.jsonl", R"({"label": ["a", "b"], "text": "x"})",
     "t.jsonl:1: found 2 labels instead of one; for any number of labels per text, set data.multi_label: true"},
    {"labels without multi_label", "labels.jsonl", R"({"labels": ["a"], "text": "x"})",
     "labels.jsonl:1: no key 'label'; found: labels, text; for several labels per text, set data.multi_label: true"},
    {"no label at all", "t.tsv", "\tx\n\ty\n", "none of 2 examples has a label; a classifier needs at least two",
     "multi_label=true"},
    {"one label", "t.tsv", "a\tx\n\ty\n", "'a' is the only label; a classifier needs at least two", "multi_label=true"},
    {"none of those named", "t.tsv", "\tx\n\ty\n", "none of 2 examples has a label; a classifier needs",
     "multi_label=true classes=a,b"},
    {"a separator in a label", "t.jsonl", R"({"labels": ["a,b", "c"], "text": "x"})",
     "data.label_separator: the label 'a,b' contains ',': choose a separator that no label has", "multi_label=true"},
};

}  // namespace

TEST_CASE("rows that cannot be used are named with file, line and remedy; on_error: skip leaves them out") {
  for (const BadFile& file : bad_files) {
    INFO(file.what);
    const TemporaryFolder folder;
    LabelledSourceConfig config = with_keys(config_of({folder.write(file.name, file.content)}), file.keys);
    if (!file.test.empty()) config.test = {folder.write("test.tsv", file.test)};
    const std::string message = message_of<Error>([&] { load_labelled(config); });
    CHECK_MESSAGE(contains(message, file.message), message);
    if (!file.kept) continue;
    config.on_error = OnError::skip;
    const ClassificationData data = load_labelled(config);
    CHECK(texts_of(data, data.train) == *file.kept);
    REQUIRE(data.left_out.size() == 1);
    check_contains(data.left_out[0], {"left out (on_error: skip), the first: ", file.message});
  }
}

TEST_CASE("on_error: skip leaves out nothing that can be used") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = config_of({folder.write("t.tsv", "a\tx\nb\t\xff\n")});
  config.on_error = OnError::skip;
  const ClassificationData bytes = load_labelled(config);
  CHECK(texts_of(bytes, bytes.train) == Fields{"x", "\xff"});
  CHECK(bytes.left_out.empty());
}

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
  const ClassificationData ag = load_labelled(news);
  REQUIRE(ag.train.size() == 2);
  CHECK(text_of(ag, ag.train, 0) == "Oil, again Prices \"rose\".");
  CHECK(ag.train.label(0) == 1);
  CHECK(text_of(ag, ag.train, 1) == "Talks They met\\in June.");
  CHECK(ag.train.label(1) == 0);
  CHECK(ag.classes == Fields{"1", "3"});

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
