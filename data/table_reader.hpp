// Rows of TSV, CSV and JSONL files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/schema.hpp"

namespace capstan {

/// by_name ("auto"): by the ending of the file's name, before .gz. folders: no table, but one text per file in a folder
/// per class.
enum class TableFormat { by_name, tsv, csv, jsonl, folders };
inline std::vector<EnumName<TableFormat>> enum_names(TableFormat) {
  return {{TableFormat::by_name, "auto"},
          {TableFormat::tsv, "tsv"},
          {TableFormat::csv, "csv"},
          {TableFormat::jsonl, "jsonl"},
          {TableFormat::folders, "folders"}};
}

/// Throws Error when the name does not tell.
TableFormat format_of(const std::string& path);

/// Which columns hold what: a number from 1 (-1 is the last column, -2 the one before), a name of the header, or a key
/// of JSONL.
struct ColumnChoice {
  bool header = false;
  std::optional<std::string> label;  // otherwise column 1, or "label"
  std::vector<std::string> text;     // otherwise the last column, or "text"; several are joined by a blank
};

struct LabelledText {
  std::string label, text;
  int64_t line = 0;                  // where the row begins
  std::vector<size_t> borders = {};  // in `text`: where each of its columns but the first begins, behind the blank

  void add_column(const std::string& column, bool first) {
    if (!first) {
      text += ' ';
      borders.push_back(text.size());
    }
    text += column;
  }
  /// The columns that the text was joined from.
  std::vector<std::string_view> columns() const;
};

/// All rows of a file's content; empty lines are left out. TSV knows no quoting. CSV is RFC 4180: fields in double
/// quotes may hold commas, line ends and doubled quotes. Throws Error "file:line: ..." for what cannot be read.
std::vector<LabelledText> read_table(std::string_view content, const std::string& file, TableFormat format,
                                     const ColumnChoice& columns);

struct CsvRecord {
  std::vector<std::string> fields;
  int64_t line = 0;
};

class CsvReader {
 public:
  CsvReader(std::string_view content, std::string file) : rest_(content), file_(std::move(file)) {}
  /// False at the end. Throws Error for an open quote and for text after a closing one.
  bool next(CsvRecord& record);

 private:
  std::string quoted_field();

  std::string_view rest_;
  std::string file_;
  int64_t line_ = 1;
};

}  // namespace capstan
