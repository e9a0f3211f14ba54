#include "core/base/error.hpp"
#include "data/formats/records.hpp"
#include "tests/data/support.hpp"

using namespace capstan;

namespace {

using Fields = std::vector<std::string>;

std::vector<Fields> csv(const std::string& content) {
  RecordReader reader(content, "t.csv");
  std::vector<Fields> records;
  for (TableRecord record; reader.next(record);) records.push_back(record.fields);
  return records;
}

std::string quoted(const std::string& field) {
  std::string result = "\"";
  for (const char c : field) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + "\"";
}

}  // namespace

TEST_CASE("CSV: the cases of RFC 4180") {
  struct Row {
    std::string content;
    std::vector<Fields> records;
  };
  for (const Row& row : {Row{"a,b\nc,d\n", {{"a", "b"}, {"c", "d"}}}, Row{"a,b\r\nc,d\r\n", {{"a", "b"}, {"c", "d"}}},
                         Row{"a,b", {{"a", "b"}}}, Row{"a,\n", {{"a", ""}}}, Row{",", {{"", ""}}}, Row{"\n", {{""}}},
                         Row{"\"a,b\",\"c\"\"d\"\n", {{"a,b", "c\"d"}}},
                         Row{"\"x\ny\",\"\"\n1,2\n", {{"x\ny", ""}, {"1", "2"}}}, Row{"\"\"\"\"", {{"\""}}},
                         Row{"\"a\"\r\n\"b\"", {{"a"}, {"b"}}}, Row{"a \"b\" c,d", {{"a \"b\" c", "d"}}}, Row{"", {}}})
    CHECK_MESSAGE(csv(row.content) == row.records, row.content);
}

TEST_CASE("CSV: quoting anything and reading it gives it back") {
  const std::vector<Fields> records = {{"", "\"", "\"\""}, {"\n", "\r\n", ",,"}, {"a", " b ", "\xc3\xa9\"\n,"}};
  std::string content;
  for (const Fields& record : records)
    content += quoted(record[0]) + "," + quoted(record[1]) + "," + quoted(record[2]) + "\r\n";
  CHECK(csv(content) == records);
}

TEST_CASE("CSV: line numbers count the lines inside quotes") {
  RecordReader reader("a,\"x\ny\nz\"\nb,c\n", "t.csv");
  TableRecord record;
  reader.next(record);
  CHECK(record.line == 1);
  reader.next(record);
  CHECK(record.line == 4);
  CHECK(message_of<Error>([] { csv("a,b\nc,\"d\n\ne"); }) ==
        "t.csv:2: a quoted field is not closed; a quote inside one must be doubled");
  CHECK(contains(message_of<Error>([] { csv("a\n\"b\" c,d\n"); }), "t.csv:2: text follows the closing quote"));
}
