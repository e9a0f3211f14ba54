// Cuts the content of TSV and CSV (RFC 4180, with other delimiters and quotes) into records of fields.
// tests/data/labelled/test_csv.cpp, tests/fuzz/fuzz_csv.cpp and fuzz_tsv.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/table_format.hpp"

namespace capstan {

struct TableRecord {
  std::vector<std::string> fields;
  std::string_view text;  // as in the file, without the last '\n', but with a '\r' in front of it
  int64_t line = 0;       // where the record begins, from 1

  bool is_empty_line() const { return fields.size() == 1 && fields[0].empty(); }
};

/// The delimiter that a first line "sep=;" names, as spreadsheets write it; 0 without such a line.
char named_delimiter(std::string_view content);

/// How many fields most rows have; of equally frequent numbers, that of the first row.
size_t common_width(const std::vector<std::vector<std::string>>& rows);

class RecordReader {
 public:
  /// `dialect`: one that is settled (found_dialect()). A first line "sep=;" is no record. `content` must outlive the
  /// reader.
  RecordReader(std::string_view content, std::string file, Dialect dialect = {','});
  /// False at the end. Throws Error for an open quote and for text after a closing one.
  bool next(TableRecord& record);
  /// Call it after an Error: next() goes on with the line after the one that the Error names.
  void skip_line();
  /// As next(); of a record that would be an Error, all that is left out has no fields.
  bool next_or_none(TableRecord& record);

 private:
  std::string quoted_field();

  std::string_view rest_;
  std::string file_;
  Dialect dialect_;
  int64_t line_ = 1;
};

}  // namespace capstan
