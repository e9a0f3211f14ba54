// Rows of each format, their columns, and the names of classes.
#include "core/base/error.hpp"
#include "data/formats/dialect.hpp"
#include "data/labelled/class_names.hpp"
#include "labelled_support.hpp"

using namespace capstan;

TEST_CASE("columns by number, from the end, by header name and by key") {
  struct Row {
    const char* what;
    std::string content;
    const char* format;
    ColumnChoice columns;
    std::vector<std::pair<std::string, std::string>> rows;
  };
  const std::string header = "id,title,label,body\n7,\"Hello, you\",pos,\"a\nb\"\n\n8,,neg,c\n";
  const std::vector<Row> cases = {
      {"first and last", "1\tx\ta\n\n0\ty\tb\r\n", "tsv", {}, {{"1", "a"}, {"0", "b"}}},
      {"tsv knows no quotes", "1\t\"a\n", "tsv", {}, {{"1", "\"a"}}},
      {"but a label loses its own", "\"b\"\t\"a\"\n", "tsv", {}, {{"b", "\"a\""}}},
      {"and so do names, with their blanks",
       " \"label\" \t text \n1\ta\n",
       "tsv",
       {true, "label", {"text"}},
       {{"1", "a"}}},
      {"numbers", "a\t1\tb\n", "tsv", {false, "2", {"3", "1"}}, {{"1", "b a"}}},
      {"negative", "a\t1\tb\n", "tsv", {false, "-2", {"-1"}}, {{"1", "b"}}},
      {"names", header, "csv", {true, "label", {"title", "body"}}, {{"pos", "Hello, you a\nb"}, {"neg", " c"}}},
      {"byte order mark", "\xef\xbb\xbf" + header, "csv", {true, "id", {}}, {{"7", "a\nb"}, {"8", "c"}}},
      {"jsonl",
       "{\"label\": 3, \"text\": \"a\\nb\"}\n\n{\"text\": \"c\", \"label\": \"x\"}",
       "jsonl",
       {},
       {{"3", "a\nb"}, {"x", "c"}}},
      {"labels that are no strings",
       "{\"label\": true, \"text\": \"a\"}\n{\"label\": 1.0, \"text\": \"b\"}\n{\"label\": 18446744073709551615, "
       "\"text\": "
       "\"c\"}",
       "jsonl",
       {},
       {{"true", "a"}, {"1", "b"}, {"18446744073709551615", "c"}}},
      {"quotes in JSON", R"({"label": "\"a\" ", "text": "x"})", "jsonl", {}, {{"\"a\"", "x"}}},
      {"keys", "{\"y\": 1, \"t\": \"a\", \"u\": \"b\"}", "jsonl", {false, "y", {"u", "t"}}, {{"1", "b a"}}}};
  for (const Row& row : cases) {
    std::vector<std::pair<std::string, std::string>> found;
    BadRows bad(OnError::stop);
    for (const LabelledText& text : read_table(row.content, "f", *format_named(row.format), row.columns, bad))
      found.emplace_back(text.label, text.text);
    CHECK(bad.count() == 0);
    CHECK_MESSAGE(found == row.rows, row.what);
  }
}

TEST_CASE("a first line sep=; is what it says: the delimiter, and no row") {
  const std::string content = "sep=;\r\nlabel;text\r\na;x, y\r\n";
  CHECK(found_dialect(content, "f").delimiter == ';');
  BadRows bad(OnError::stop);
  const auto rows = read_table(content, "f", *format_named("csv"), {true, "label", {"text"}}, bad);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].text == "x, y");
  CHECK(rows[0].line == 3);
  CHECK(found_dialect("sep=;,b\nc,d\n", "f").delimiter == ',');
}

TEST_CASE("CSV: a few rows without their quotes do not hide the delimiter, and two that fit are asked for") {
  const auto delimiter = [](const std::string& content) { return found_dialect(content, "f.csv").delimiter; };
  CHECK(delimiter("label;text\na;x\nb;y; z\na;v\nb;w\n") == ';');
  CHECK(delimiter("a,x\nb,y, z\na,v\nb,w\n") == ',');
  CHECK(delimiter("text\nx; y\nz, w\n") == ',');
  CHECK(delimiter("id;price;text\n1;3,5;x\n2;4,5;y\n") == ';');
  // The width that most rows have counts, not that of the first one.
  CHECK(delimiter("a;x; y, z\nb;y, z, w\na;v\nb;w\n") == ';');
  std::string decimals;
  for (int i = 0; i < 5; ++i) decimals += fmt::format("{};3,{};text\n", i, i);
  CHECK(contains(message_of<Error>([&] { delimiter(decimals); }), "by semicolons or by commas"));
  CHECK(
      message_of<Error>([&] { delimiter("a,x;\nb,y, z;\na,v;\nb,w;\n"); }) ==
      "f.csv: its columns may be separated by commas or by semicolons; set data.delimiter to ',' or ';', or write sep= "
      "and one of them into a first line of its own");
}

TEST_CASE("CSV: single quotes are found where most rows have a field in them, and they divide the rows no worse") {
  const auto quote = [](const std::string& content) { return found_dialect(content, "f.csv").quote; };
  CHECK(quote("a;'x; y'\nb;'y, z'\na;'v''w'\n") == '\'');
  CHECK(quote("text,label\n'good, or so',a\n'bad',b\n") == '\'');
  CHECK(quote("a,'tis good\nb,'twas bad\na,fine\n") == '"');
  CHECK(quote("a,\"x\"\nb,it's\n") == '"');
  CHECK(found_dialect("a:'x'\nb:'y'\nc:'z'\n", "f.csv", {':'}).quote == '\'');
  CHECK(found_dialect("a,'x'\nb,'y'\n", "f.csv", {',', '\0'}).quote == '\0');
}

TEST_CASE("the format follows the name") {
  CHECK(format_of("a/b.tsv").name == std::string("tsv"));
  CHECK(format_of("b.csv.gz").name == std::string("csv"));
  CHECK(format_of("b.jsonl.zst").name == std::string("jsonl"));
  CHECK(format_of("b.jsonl").name == std::string("jsonl"));
  CHECK(contains(message_of<Error>([] { format_of("b.txt"); }), "b.txt: the name does not show the format"));
}

TEST_CASE("class names: lists and gathered ones") {
  const ClassNames list = ClassNames::from_list({"World", "Sports", "Sci/Tech"}, "classes");
  CHECK(list.index_of("Sports", "f:1") == 1);
  CHECK(list.index_of("2", "f:1") == 2);
  CHECK(message_of<Error>([&] { list.index_of("Sprots", "f:1"); }) ==
        "f:1: unknown label 'Sprots', did you mean 'Sports'? known: World, Sports, Sci/Tech");
  CHECK(message_of<Error>([&] { list.index_of("3", "f:9"); }) ==
        "f:9: unknown label '3'; known: World, Sports, Sci/Tech");
  CHECK_THROWS_AS(list.index_of("-1", "f:1"), Error);
  const ClassNames numbers = ClassNames::gather({"10", "2", "1", "2"}, "train");
  CHECK(numbers.names() == Fields{"1", "2", "10"});
  CHECK(numbers.index_of("10", "f:1") == 2);
  CHECK_THROWS_AS(numbers.index_of("0", "f:1"), Error);  // not an index: the names are numbers themselves
  CHECK(ClassNames::gather({"b", "a"}, "train").names() == Fields{"a", "b"});
  CHECK_THROWS_AS(ClassNames::gather({"b", "a"}, "train").index_of("0", "f:1"), Error);
  CHECK(contains(message_of<Error>([] { ClassNames::from_list({"a", "a"}, "classes"); }), "'a' is named twice"));
}
