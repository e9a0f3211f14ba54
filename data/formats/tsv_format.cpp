// The format tsv of tables (table_format.hpp): lines divided by tabs, read and written by way of delimited.hpp.
// tests/fuzz/fuzz_tsv.cpp.
#include "core/strings/strings.hpp"
#include "data/files/text_file.hpp"
#include "data/formats/delimited.hpp"

namespace capstan {
namespace {

/// Lines divided by tabs. Quotes are text.
class TsvReader {
 public:
  explicit TsvReader(std::string_view content) : lines_(content) {}

  bool next(TableRecord& record) {
    Line line;
    if (!lines_.next(line)) return false;
    const std::vector<std::string_view> fields = split(line.text, "\t");
    record = {{fields.begin(), fields.end()}, line.text, line.number};
    return true;
  }
  void skip_line() {}  // next() throws for no row

 private:
  Lines lines_;
};

}  // namespace

TableFormat tsv_format() {
  TableFormat format{
      "tsv", [](const TableInput& input) { return read_records(TsvReader(input.content), input, "tsv", '\t'); }};
  format.endings = {".tsv"};
  format.fields = TableFormat::Fields::columns;
  format.first_rows = [](std::string_view content, const std::string&, const Dialect&, size_t count) {
    return first_records(TsvReader(content), count);
  };
  format.delimiter = [](std::string_view, const std::string&, const Dialect&) { return '\t'; };
  format.with_fields = [](const TableOutput& output) {
    return records_with_fields(TsvReader(output.content), output, {'\t'});
  };
  return format;
}

}  // namespace capstan
