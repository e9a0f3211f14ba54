#include <doctest/doctest.h>

#include <algorithm>

#include "data/labelled/table_reading.hpp"
#include "labelled_support.hpp"

namespace capstan {
namespace {

/// A table as people have it, and what comes of it.
struct Table {
  std::string what;
  const char *file, *content, *classes, *text;  // the first text
};

const Table tables[] = {
    {"CSV with a header", "a.csv", "text,label\ngood film,pos\nbad film,neg\nfine,pos\n", "neg pos", "good film"},
    {"the label first, no header", "a.csv", "pos,good film\nneg,bad film\npos,fine\n", "neg pos", "good film"},
    {"semicolons", "a.csv", "text;label\ngood film;pos\nbad film;neg\nfine;pos\n", "neg pos", "good film"},
    {"bars", "a.csv", "text|label\ngood film|pos\nbad film|neg\nfine|pos\n", "neg pos", "good film"},
    {"sep= of Excel", "a.csv", "sep=;\ntext;label\ngood;pos\nbad;neg\n", "neg pos", "good"},
    {"CR LF", "a.csv", "text,label\r\ngood,pos\r\nbad,neg\r\n", "neg pos", "good"},
    {"a byte order mark", "a.csv", "\xef\xbb\xbftext,label\ngood,pos\nbad,neg\n", "neg pos", "good"},
    {"line ends in quotes", "a.csv", "text,label\n\"good\nfilm\",pos\nbad,neg\n", "neg pos", "good\nfilm"},
    {"an index of pandas", "a.csv", ",text,label\n0,good,pos\n1,bad,neg\n", "neg pos", "good"},
    {"single quotes", "a.csv", "pos;'good; film'\nneg;'bad, film'\npos;'it''s fine'\n", "neg pos", "good; film"},
    {"files that were joined", "a.csv", "text,label\ngood,pos\nbad,neg\ntext,label\nfine,pos\n", "neg pos", "good"},
    {"lists of one label", "a.csv", "text,label\ngood,['pos']\nbad,['neg']\n", "neg pos", "good"},
    {"lists of one label in JSON", "a.jsonl",
     "{\"text\": \"good\", \"label\": [\"pos\"]}\n{\"text\": \"bad\", \"label\": [\"neg\"]}\n", "neg pos", "good"},
    {"two texts", "a.tsv", "label\tsentence1\tsentence2\npos\ta good film\tit is fine\nneg\ta bad film\tit is not\n",
     "neg pos", "a good film it is fine"},
    {"a subject beside its body", "a.jsonl",
     "{\"subject\": \"a good film\", \"body\": \"it is fine\", \"label\": 1}\n"
     "{\"subject\": \"a bad film\", \"body\": \"it is not\", \"label\": 0}\n",
     "0 1", "a good film it is fine"},
    {"TSV", "a.tsv", "label\ttext\npos\tgood\nneg\tbad\n", "neg pos", "good"},
    {"JSONL", "a.jsonl", "{\"text\": \"good\", \"label\": 1}\n{\"text\": \"bad\", \"label\": 0}\n", "0 1", "good"},
    {"JSONL with other keys", "a.jsonl",
     "{\"review\": \"good film\", \"sentiment\": \"pos\"}\n{\"review\": \"bad film\", \"sentiment\": \"neg\"}\n",
     "neg pos", "good film"},
    {"a JSON array", "a.json",
     "[\n  {\"text\": \"good, [ \\\" ] film\", \"label\": \"pos\"},\n  {\"text\": \"bad\",\n   \"label\": "
     "\"neg\"}\n]\n",
     "neg pos", "good, [ \" ] film"},
    {"a JSON array on one line", "a.json", "[{\"text\":\"a\",\"label\":1},{\"text\":\"b\",\"label\":0}]", "0 1", "a"},
};

struct RefusedTable {
  std::string what;
  const char *file, *content, *error;
};

const RefusedTable refused_tables[] = {
    {"commas in a TSV", "a.tsv", "pos,good film\nneg,bad film\n", "set data.format: csv"},
    {"a JSON array with a row that is none", "a.json", "[{\"text\": \"a\", \"label\": 1},\n 7]", "a.json:2"},
    {"a JSON array that is cut in an element", "a.json", "[{\"text\": \"a\", \"label\": 1},\n {\"text\": ",
     "a.json:2:2: element 2 of the array begins here, and the file ends at 2:11 before it does: the file was cut"},
    {"a JSON array that is cut between elements", "a.json",
     "[{\"text\": \"a\", \"label\": 1},\n{\"text\": \"b\", \"label\": 0},\n",
     "a.json:3:1: the file ends here, after 2 elements, without the ] of its array"},
    {"two JSON arrays", "a.json", "[{\"text\": \"a\", \"label\": 1}]\n[{\"text\": \"b\", \"label\": 0}]\n",
     "a.json:2:1: the array ends before this; a file is one array, or has an object in each line: jq -c"},
    {"a JSON array whose element is wrong", "a.json",
     "[{\"text\": \"a\", \"label\": 1}, {\"text\": \"b\", \"label\" 0}]", "a.json:1:51: not JSON"},
    {"fastText", "a.txt", "__label__pos good\n__label__neg bad\n", "fasttext is for lines with words"},
    {"Parquet", "a.parquet", "PAR1", "pandas.read_parquet('"},
    {"Excel", "a.xlsx", "PK", "pandas.read_excel('"},
    {"commas in texts without quotes", "a.csv",
     "pos,Good, and cheap\nneg,Bad, and dear\npos,Fine, and near\nneg,Poor, and far\n",
     "put the texts in double quotes"},
    {"several columns that look like texts", "a.csv",
     "label,claim,evidence\npos,this is so,as one can see\nneg,that is not,as no one sees\n",
     "the columns claim and evidence look like texts; read all of them with data.text_columns=[claim, evidence], or "
     "one, as with data.text_columns=[evidence]"},
    {"UTF-16", "a.csv", "\xff\xfet\0e\0", "UTF-16"},
};

}  // namespace

TEST_CASE("tables as people have them are read") {
  for (const Table& table : tables) {
    INFO(table.what);
    const TemporaryFolder folder;
    LabelledSourceConfig config = config_of({folder.write(table.file, table.content)});
    find_columns(config);
    const ClassificationData data = load_labelled(config);
    std::string classes;
    for (const std::string& name : data.classes) classes += (classes.empty() ? "" : " ") + name;
    CHECK(classes == table.classes);
    CHECK(text_of(data, data.train, 0) == table.text);
  }
}

TEST_CASE("tables that cannot be read as they are: refused with the remedy") {
  for (const RefusedTable& table : refused_tables) {
    INFO(table.what);
    const TemporaryFolder folder;
    LabelledSourceConfig config = config_of({folder.write(table.file, table.content)});
    const std::string said = message_of<Error>([&] {
      find_columns(config);
      load_labelled(config);
    });
    CHECK_MESSAGE(contains(said, table.error), said);
  }
}

TEST_CASE("a column that is label and text, and a table that is compressed without saying so, are refused") {
  const TemporaryFolder folder;
  const auto message = [&](const char* name, const std::string& content, const auto& change) {
    LabelledSourceConfig config = config_of({folder.write(name, content)});
    config.on_error = OnError::skip;
    change(config);
    return message_of<Error>([&] { load_labelled(config); });
  };
  const auto text_in = [](const char* column) {
    return [column](LabelledSourceConfig& config) { config.text_columns = {column}; };
  };
  const std::string remedy = " is both the label and the text; choose another one for either with label_column";
  const std::string tsv = "a\tx\tmore\nb\ty\tmore\n", jsonl = "{\"label\": \"a\", \"text\": \"x\"}\n";
  CHECK(contains(message("t.tsv", tsv, text_in("1")), "t.tsv: column 1" + remedy));
  CHECK(contains(message("t.tsv", tsv, text_in("-3")), "t.tsv: column 1" + remedy));
  CHECK(contains(message("t.tsv", tsv, [](auto& config) { config.label_column = "3"; }), "column 3" + remedy));
  CHECK(contains(message("t.jsonl", jsonl, text_in("label")), "t.jsonl: the key 'label'" + remedy));
  CHECK(contains(message("z.tsv", "\x1f\x8b\x08\ta\tb\nc\n", [](auto&) {}),
                 "z.tsv: is compressed (gzip); unpack it with gzip -dc, or give it a name that ends in .gz"));
}

TEST_CASE("a cut array: the cut leads what `data check` says, and on_error: skip goes on without the cut element") {
  const TemporaryFolder folder;
  const std::string one = "{\"text\": \"good\", \"label\": \"pos\"}, ";
  LabelledSourceConfig config = config_of({folder.write("a.json", "[" + one + one + "{\"text\": \"b")});
  const std::string said = message_of<Error>([&] { check_source(config, {}); });
  CHECK(contains(said, "a.json:1:70: element 3 of the array begins here"));
  CHECK_MESSAGE(said.find("element 3") < said.find("all 2 examples have the label 'pos'"), said);
  const std::string other = "{\"text\": \"bad\", \"label\": \"neg\"}, ";
  config = config_of({folder.write("b.json", "[" + one + other + "{\"text\": \"b")});
  config.on_error = OnError::skip;
  const ClassificationData data = load_labelled(config);
  CHECK(data.train.size() == 2);
  CHECK(data.left_out.size() == 1);
}

TEST_CASE("data.delimiter and data.quote divide the fields of csv; other uses are refused") {
  struct Case {
    const char *what, *file, *content, *delimiter, *quote, *text;
  };
  const Case cases[] = {{"colons", "a.txt", "pos:good film\nneg:bad film\n", ":", "\"", "good film"},
                        {"tildes", "a.csv", "label~text\npos~good, or so\nneg~bad\n", "~", "\"", "good, or so"},
                        {"tabs and quotes", "a.tsv", "pos\t\"good\tfilm\"\nneg\tbad\n", "tab", "\"", "good\tfilm"},
                        {"other quotes", "a.csv", "pos,'good, film'\nneg,'bad''s'\n", "", "'", "good, film"},
                        {"no quotes", "a.csv", "pos,\"good film\nneg,bad\" film\n", "", "none", "\"good film"}};
  for (const auto& [what, file, content, delimiter, quote, text] : cases) {
    INFO(what);
    const TemporaryFolder folder;
    LabelledSourceConfig config = config_of({folder.write(file, content)});
    config.delimiter = delimiter;
    config.quote = quote;
    find_columns(config);
    const ClassificationData data = load_labelled(config);
    CHECK(data.classes == std::vector<std::string>{"neg", "pos"});
    CHECK(text_of(data, data.train, 0) == text);
  }
  const auto problem = [](const char* keys) { return problems_of(with_keys({}, keys)); };
  CHECK(contains(problem("delimiter=ab"), "data.delimiter: expected one ASCII character"));
  CHECK(contains(problem("quote=''"), "data.quote: expected one ASCII character, single, or none"));
  CHECK(contains(problem("delimiter=' quote='"), "data.quote: is the delimiter, too"));
  CHECK(contains(problem("delimiter=; format=jsonl"), "data.delimiter: delimiter and quote are of csv files"));
  CHECK(problem("delimiter=\\t quote=none format=csv").empty());
}

TEST_CASE("several tables: columns are found by their names in each; without names, other columns are refused") {
  struct Case {
    const char *what, *first, *second, *says;
  };
  const Case cases[] = {
      {"another order", "text,label\ngood,pos\nbad,neg\n", "label,more,text\npos,7,fine\n", "no error"},
      {"another name", "text,label\ngood,pos\nbad,neg\n", "review,label\nfine,pos\n",
       "b.csv:1: no column is called 'text'; the first row has: review, label"},
      {"more columns", "pos,good film\nneg,bad film\n", "7,pos,fine film\n8,neg,poor film\n",
       "b.csv: has 3 columns, but "},
      {"a header in the second alone", "pos,good film\nneg,bad film\n", "label,text\npos,fine film\nneg,poor film\n",
       "b.csv:1: the row names columns (label, text), but "}};
  for (const auto& [what, first, second, says] : cases) {
    INFO(what);
    const TemporaryFolder folder;
    LabelledSourceConfig config = config_of({folder.write("a.csv", first), folder.write("b.csv", second)});
    find_columns(config);
    const std::string said = message_of<Error>([&] { load_labelled(config); });
    CHECK_MESSAGE(contains(said, says), said);
  }
}

TEST_CASE("a class of which all rows are skipped is named; 1, 1.0 and true are the same label of other files") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = config_of({folder.write("a.csv", "a,x\nb,\xff\nc,y\nb,\xff\nc,\xff\n")});
  config.tokenizer = CharTokenizerConfig{};
  config.on_error = OnError::skip;
  const ClassificationData data = load_labelled(config);
  REQUIRE(data.left_out.size() == 2);
  CHECK(data.left_out[1] == "data: there is no class 'b': all of its 2 rows were left out (on_error: skip)");
  struct Case {
    const char *train, *test;
  };
  const Case cases[] = {{"1,x\n0,y\n", "1.0,a\n0.0,b\n"},
                        {"1,x\n0,y\n", "True,a\nfalse,b\n"},
                        {"true,x\nfalse,y\n", "1,a\n0,b\n"},
                        {"1.0,x\n0.0,y\n", "TRUE,a\nFALSE,b\n"}};
  for (const auto& [train, test] : cases) {
    INFO(train, test);
    LabelledSourceConfig both = config_of({folder.write("train.csv", train)});
    both.test = {folder.write("test.csv", test)};
    CHECK(load_labelled(both).test.label(0) == 1);
  }
  const ClassificationData mixed = load_labelled(config_of({folder.write("m.csv", "1,x\n0,y\ntrue,z\n")}));
  REQUIRE(mixed.warnings.size() == 1);
  CHECK(mixed.warnings[0].check == std::string("alike-labels"));
}

TEST_CASE("a column of weights: numbers from 0, which count in training alone, and 0 leaves a row out") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = config_of({folder.write("a.csv", "text,label,w\na,x,2\nb,y,0.5\nc,x,0\n")});
  config.header = true;
  config.label_column = "label";
  config.text_columns = {"text"};
  config.weight_column = "w";
  const ClassificationData data = load_labelled(config);
  REQUIRE(data.train.size() == 2);
  CHECK(data.train.weight(0) == 2);
  CHECK(data.train.weight(1) == 0.5);
  for (const char* const wrong : {"-1", "nan", "much", ""}) {
    config.train = {folder.write("b.csv", std::string("text,label,w\na,x,1\nb,y,") + wrong + "\n")};
    CHECK(contains(message_of<Error>([&] { load_labelled(config); }), "b.csv:3: column 'w' of data.weight_column"));
  }
  config.train = {folder.write("none.csv", "text,label,w\na,x,0\nb,y,0\n")};
  CHECK(contains(message_of<Error>([&] { load_labelled(config); }),
                 "none.csv: all rows have weight 0 (data.weight_column)"));
  config.train = {folder.write("c.jsonl",
                               "{\"text\": \"a\", \"label\": \"x\", \"w\": 3}\n"
                               "{\"text\": \"b\", \"label\": \"y\", \"w\": 1}\n")};
  config.header = std::nullopt;
  CHECK(load_labelled(config).train.weight(0) == 3);
}

TEST_CASE("folders of classes: what is left out, misspelt or no text is named") {
  const TemporaryFolder folder;
  folder.write("train/pos/1.txt", "good");
  folder.write("train/neg/1.txt", "bad");
  folder.write("train/other/1.txt", "what");
  LabelledSourceConfig config = config_of({folder.path("train")});
  config.format = format_of_folders;
  config.classes = {"pos", "negg"};
  CHECK(contains(message_of<Error>([&] { load_labelled(config); }),
                 "there is no folder 'negg'; not in data.classes: neg (1 files), other (1 files)"));
  config.classes = {"pos", "neg"};
  std::string said;
  load_labelled(config, nullptr, true, [&](const std::string& line) { said += line; });
  CHECK(contains(said, "left out folders that data.classes does not name: other (1 files)"));
}

TEST_CASE("folders of one list each, and folders of runs beside those of classes") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 24; ++i) lines += fmt::format("text {}\n", i);
  LabelledSourceConfig config = config_of({folder.path("lists")});
  config.format = format_of_folders;
  folder.write("lists/pos/all.txt", lines);
  folder.write("lists/neg/all.txt", lines);
  CHECK(contains(message_of<Error>([&] { load_labelled(config); }), "all.txt: each class has one file of many lines"));
  folder.write("loose/pos.txt", lines);
  config.train = {folder.path("loose")};
  CHECK(contains(message_of<Error>([&] { load_labelled(config); }), "if each line is a text, write a table: for f in"));
  for (const char* const file : {"all/pos/1.txt", "all/pos/2.txt", "all/neg/1.txt"}) folder.write(file, "a text");
  folder.write("all/runs/one/config.yaml", "name: one");
  folder.write("all/runs/one/train.log", "a line");
  config.train = {folder.path("all")};
  CHECK(load_labelled(config).classes == std::vector<std::string>{"neg", "pos"});
}

TEST_CASE("rows that repeat the header are left out with a count") {
  const TemporaryFolder folder;
  LabelledSourceConfig config =
      config_of({folder.write("a.csv", "text,label\ngood,pos\nbad,neg\ntext,label\nfine,pos\n\"text\",label\n")});
  find_columns(config);
  const ClassificationData data = load_labelled(config);
  CHECK(data.train.size() == 3);
  const std::string said = "data: 2 rows left out that are the header again, as in files that were joined; the first: ";
  REQUIRE(data.left_out.size() == 1);
  CHECK(contains(data.left_out[0], said));
  CHECK(contains(data.left_out[0], "a.csv:4"));
  const DataReport report = check_source(config, {});
  CHECK(report.errors.empty());
  CHECK(std::any_of(report.warnings.begin(), report.warnings.end(), [&](const DataWarning& one) {
    return one.check == std::string("left-out") && contains(one.message, said);
  }));
}

TEST_CASE("a full disk is no fault of a row: reading ends at once, whatever data.on_error says") {
  BadRows bad(OnError::skip);
  CHECK_THROWS_AS(bad.guard([] { throw FileError("cannot write a temporary file", 28); }), FileError);
  CHECK(bad.count() == 0);
}

TEST_CASE("labels that stand for none are pointed out") {
  const TemporaryFolder folder;
  std::string rows;
  for (int i = 0; i < 30; ++i)
    rows += fmt::format("{}\ttext number {} of all\n", i % 3 == 0 ? "nan" : i % 3 == 1 ? "pos" : "neg", i);
  const ClassificationData data = load_labelled(config_of({folder.write("a.tsv", rows)}));
  const auto found = std::find_if(data.warnings.begin(), data.warnings.end(),
                                  [](const DataWarning& one) { return one.check == std::string("missing-labels"); });
  REQUIRE(found != data.warnings.end());
  CHECK(contains(found->message, "'nan' (10)"));
}

}  // namespace capstan
