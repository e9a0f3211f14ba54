// Reads CSV (RFC 4180, with other delimiters and quotes) record by record, and finds its delimiter.
// tests/data/labelled/test_csv.cpp and tests/fuzz/fuzz_csv.cpp hold both; commands and sources use it by way of
// csv_format() (table_format.hpp).
#pragma once

#include <string>
#include <string_view>

#include "data/formats/delimited.hpp"

namespace capstan {

/// What separates the fields of a CSV: what a first line "sep=;" says, which spreadsheets write; otherwise the comma,
/// unless only a semicolon, a tab or a bar divides the first row and most others into equally many fields. Throws Error
/// where that leaves a doubt.
char csv_delimiter(std::string_view content, const std::string& file, char quote = '"');
/// `given`, with csv_delimiter() as its delimiter if it has none.
Dialect csv_dialect(std::string_view content, const std::string& file, Dialect given);

class CsvReader {
 public:
  /// A first line "sep=;" is no record. `content` must outlive the reader.
  CsvReader(std::string_view content, std::string file, Dialect dialect = {','});
  /// False at the end. Throws Error for an open quote and for text after a closing one.
  bool next(TableRecord& record);
  /// Call it after an Error: next() goes on with the line after the one that the Error names.
  void skip_line();

 private:
  std::string quoted_field();

  std::string_view rest_;
  std::string file_;
  Dialect dialect_;
  int64_t line_ = 1;
};

}  // namespace capstan
