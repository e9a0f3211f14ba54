// The formats of tables of labelled texts, for data/labelled and data/pairs, for --input of `capstan predict` and its
// like, and for the tables that it writes. A format is one file, with its declaration here and its entry in the list of
// table_format.cpp (docs/adding.md). All formats give the same rows for the same table:
// tests/data/labelled/test_labelled_source.cpp and test_multi_label.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "data/files/bad_rows.hpp"

namespace capstan {

/// How the rows of csv are divided into fields. One that is given may leave both to be found (found_dialect()).
struct Dialect {
  char delimiter = '\0';  // 0: found
  char quote = '"';       // ": found, perhaps as '; 0: none
};

/// Which columns hold what: a number from 1 (-1 is the last column, -2 the one before), a name of the header, or a key.
struct ColumnChoice {
  bool header = false;
  std::optional<std::string> label;  // otherwise column 1, or "label" ("labels" where a row has several)
  std::vector<std::string> text;     // otherwise the last column, or "text"; several are joined by a blank
  bool labels = true;                // false: rows need no label, and LabelledText::label stays empty
  std::string label_separator = "";  // not empty: a row has any number of labels, LabelledText::labels
  const char *label_key = "label_column", *text_key = "text_columns";  // the keys that choose them, for errors
  std::vector<std::string> label_columns = {};  // not empty: columns of 0 and 1, each of which is a label
  std::string weight = "";                      // not empty: the column of LabelledText::weight
  std::string group = "";                       // not empty: the column of LabelledText::group
  bool targets = false;                         // the label is a text, the target of a pair
  bool empty_labels = false;                    // a row may lack its label
  Dialect dialect = {};

  const char* label_noun() const { return targets ? "the target" : "the label"; }
  const char* text_noun() const { return targets ? "the source" : "the text"; }
  /// What is wrong with a column, or key, that is chosen as label and as text: a model would be trained to read its
  /// answer.
  Error label_is_text(const std::string& file, const std::string& column) const {
    return Error(fmt::format("{}: {} is both {} and {}; choose another one for either with {}", file, column,
                             label_noun(), text_noun(), keys()));
  }

  std::string keys() const {
    return labels ? fmt::format("{} and {}", label_columns.empty() ? label_key : "label_columns", text_key) : text_key;
  }
};

struct LabelledText {
  std::string label, text;
  int64_t line = 0;                      // where the row begins
  std::vector<size_t> boundaries = {};   // in `text`: where each of its columns but the first begins, after the blank
  std::vector<std::string> labels = {};  // where a row has any number of them, each once
  double weight = 1;                     // how much it counts in training
  std::string group = {};                // what it belongs to, such as a customer

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

/// Takes a row, and how many bytes of the content were read with it.
using TakeRow = std::function<void(LabelledText&& row, size_t end)>;

/// A table, what is read of it, and who takes the rows. All references must outlive the call of TableFormat::read.
struct TableInput {
  std::string_view content;  // without a byte order mark
  const std::string& file;
  const ColumnChoice& choice;
  BadRows& bad;  // takes the problems of rows
  bool utf8;     // a row of other text is bad
  const TakeRow& take;
};

/// A field that is written after those of a row.
struct AddedField {
  std::string name, value;
  bool number = false;
};

/// A table that gets new columns.
struct TableOutput {
  std::string_view content;  // for TableFormat::with_fields without a byte order mark
  const std::string& file;
  bool header;  // has it one?
  Dialect dialect;
  const std::vector<AddedField>& columns;            // the new ones; their values do not matter
  const std::vector<std::vector<AddedField>>& rows;  // their fields, of each row that was read
  const std::vector<int64_t>& lines;                 // where each of these rows begins; others get empty fields
};

struct TableFormat {
  const char* name;  // in data.format and --input
  /// Gives all rows to `take`; empty lines are left out. Rows that cannot be read go to `bad`; a header that cannot be
  /// used is thrown as Error.
  void (*read)(const TableInput&);

  std::vector<std::string> endings = {};  // of the names of such files, before .gz or .zst
  /// How a field is found: not at all, by the number or the header of its column, or by its key.
  enum class Fields { none, columns, keys } fields = Fields::none;
  bool line_ends = false;  // may a field hold line ends?
  /// The fields of the first rows, the header included; of keys, these are the first row. Fewer at the end, and at a
  /// row that cannot be read. Null where there are no fields.
  std::vector<std::vector<std::string>> (*first_rows)(std::string_view content, const std::string& file,
                                                      const Dialect& dialect, size_t count) = nullptr;
  /// The table with the new columns; throws Error where it has such a column. Null: it cannot have any.
  std::string (*with_fields)(const TableOutput&) = nullptr;
  /// What separates and quotes the fields of the content; null where that is no question.
  Dialect (*dialect)(std::string_view content, const std::string& file, Dialect given) = nullptr;
};

/// Fields separated by tabs, without quoting.
TableFormat tsv_format();
/// RFC 4180: fields in double quotes may hold delimiters, line ends and doubled quotes.
TableFormat csv_format();
/// A JSON object per line, or an array of objects.
TableFormat jsonl_format();
/// Lines of text whose words with the prefix __label__ are their labels.
TableFormat fasttext_format();

/// All formats. Their order is that of messages and of docs/configuration.md.
const std::vector<TableFormat>& table_formats();

/// The values of data.format that are no format of tables. "auto": the file's name tells the format. "folders": each
/// file is one text, whose class is its folder.
constexpr const char *format_by_name = "auto", *format_of_folders = "folders";

/// "auto", the names of all formats, and "folders".
std::vector<std::string> data_format_names();
/// The format of this name; null for "auto", "folders" and unknown names.
const TableFormat* format_named(std::string_view name);
/// The format by whose ending a file's name ends; null if there is none.
const TableFormat* format_by_ending(const std::string& path);
/// The format of this name or, of "auto", by the file's name. Throws Error when that does not show it.
const TableFormat& format_of(const std::string& path, std::string_view name = format_by_name);

/// A file's content without a byte order mark, as spreadsheets write it. Throws Error as check_is_text() does.
std::string_view without_mark(std::string_view content, const std::string& file);

/// A text as a field of TSV: tabs and line ends become spaces.
std::string tsv_field(std::string text);

/// "\r\n" if the first line ends so, otherwise "\n".
const char* line_end_of(std::string_view content);

/// TableFormat::read of a whole file. Throws Error as without_mark() and check_line_ends() do.
void read_table(std::string_view content, const std::string& file, const TableFormat& format,
                const ColumnChoice& columns, BadRows& bad, bool utf8, const TakeRow& take);
std::vector<LabelledText> read_table(std::string_view content, const std::string& file, const TableFormat& format,
                                     const ColumnChoice& columns, BadRows& bad, bool utf8 = false);

/// TableFormat::first_rows of a file's beginning.
std::vector<std::vector<std::string>> first_rows(std::string_view content, const std::string& file,
                                                 const TableFormat& format, size_t count, const Dialect& dialect = {});

/// TableFormat::with_fields of a whole file, with its byte order mark.
std::string with_fields(const TableFormat& format, TableOutput output);

}  // namespace capstan
