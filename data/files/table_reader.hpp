// Rows of TSV, CSV and JSONL files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "core/config/schema.hpp"
#include "data/files/bad_rows.hpp"

namespace capstan {

/// by_name ("auto"): by the ending of the file's name, before .gz or .zst. fasttext: lines of text whose words with the
/// prefix __label__ are their labels. folders: no table, but one text per file in a folder per class.
enum class TableFormat { by_name, tsv, csv, jsonl, fasttext, folders };
inline std::vector<EnumName<TableFormat>> enum_names(TableFormat) {
  return {{TableFormat::by_name, "auto"}, {TableFormat::tsv, "tsv"},           {TableFormat::csv, "csv"},
          {TableFormat::jsonl, "jsonl"},  {TableFormat::fasttext, "fasttext"}, {TableFormat::folders, "folders"}};
}

/// Throws Error when the name does not show it.
TableFormat format_of(const std::string& path);

/// Which columns hold what: a number from 1 (-1 is the last column, -2 the one before),
/// a name of the header, or a key of JSONL.
struct ColumnChoice {
  bool header = false;
  std::optional<std::string> label;  // otherwise column 1, or "label" ("labels" where a row has several)
  std::vector<std::string> text;     // otherwise the last column, or "text"; several are joined by a blank
  bool labels = true;                // false: rows need no label, and LabelledText::label stays empty
  std::string label_separator = "";  // not empty: a row has any number of labels, LabelledText::labels
  const char *label_key = "label_column", *text_key = "text_columns";  // the keys that choose them, for errors
  std::string keys() const { return labels ? fmt::format("{} and {}", label_key, text_key) : text_key; }
};

struct LabelledText {
  std::string label, text;
  int64_t line = 0;                      // where the row begins
  std::vector<size_t> boundaries = {};   // in `text`: where each of its columns but the first begins, after the blank
  std::vector<std::string> labels = {};  // where a row has any number of them

  void add_column(const std::string& column, bool first) {
    if (!first) {
      text += ' ';
      boundaries.push_back(text.size());
    }
    text += column;
  }
  /// The columns that the text was joined from.
  std::vector<std::string_view> columns() const;
};

/// A file's content without a byte order mark, as spreadsheets write it. Throws Error for UTF-16.
std::string_view without_mark(std::string_view content, const std::string& file);

/// All rows of a file's content; empty lines are left out. TSV has no quoting. CSV is RFC 4180 with the delimiter that
/// csv_delimiter() finds: fields in double quotes may hold delimiters, line ends and doubled quotes. Several labels are
/// parts of their field, or in JSONL a list. Rows that cannot be read, with `utf8` also those that are not UTF-8, go to
/// `bad`; a header that cannot be used is thrown as Error.
std::vector<LabelledText> read_table(std::string_view content, const std::string& file, TableFormat format,
                                     const ColumnChoice& columns, BadRows& bad, bool utf8 = false);

std::vector<std::string> tsv_fields(std::string_view line);

/// A list of strings or integers as JSON or Python write it; none for any other text.
std::optional<std::vector<std::string>> listed_labels(std::string_view text);

/// "a, b" -> {"a", "b"}: without the blanks around a label; empty text has none. A list in brackets, as JSON or Python
/// write one, needs no separator.
std::vector<std::string> split_labels(std::string_view text, std::string_view separator);

/// The fields of the first `count` rows of TSV or CSV, the header included; fewer at the end, and at a row that cannot
/// be read. None of other formats.
std::vector<std::vector<std::string>> first_rows(std::string_view content, const std::string& file, TableFormat format,
                                                 size_t count);

struct CsvRecord {
  std::vector<std::string> fields;
  std::string_view text;  // as in the file
  int64_t line = 0;

  bool is_empty_line() const { return fields.size() == 1 && fields[0].empty(); }
};

/// What separates the fields of a CSV: what a first line "sep=;" says, which spreadsheets write; otherwise the comma,
/// unless only a semicolon, a tab or a bar divides its first rows into equally many fields.
char csv_delimiter(std::string_view content);

class CsvReader {
 public:
  /// A first line "sep=;" is no record.
  CsvReader(std::string_view content, std::string file, char delimiter = ',');
  /// False at the end. Throws Error for an open quote and for text after a closing one.
  bool next(CsvRecord& record);
  /// After an Error: goes on with the line after the one that it names.
  void skip_line();

 private:
  std::string quoted_field();

  std::string_view rest_;
  std::string file_;
  char delimiter_;
  int64_t line_ = 1;
};

}  // namespace capstan
