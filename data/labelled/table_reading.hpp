// How a table is understood: its dialect (data/formats/dialect.hpp), its header (table_header.hpp), its columns with
// their kinds (column_sample.hpp) and what each of them has (column_roles.hpp). Training, `data check`, `eval` and the
// commands that read new texts ask this one function, so that they cannot differ.
// tests/data/labelled/test_tables_people_have.cpp, tests/run/test_table_forms.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/labelled/class_names.hpp"
#include "data/labelled/column_sample.hpp"
#include "data/labelled/labelled_config.hpp"

namespace capstan {

/// What a table is read for. Columns that the configuration sets are read as it says.
struct TableWish {
  enum class Purpose {
    settle,     // the first table of a training: what is not set is found by names and values
    read,       // another table of a run's data: what is not set is as docs/labelled.md says
    new_texts,  // a command's table: found by the names of the run's columns, else by its classes
  };

  const LabelledSourceConfig& config;
  Purpose purpose = Purpose::read;
  bool classifies = true;               // settle: a model needs the labels
  const ClassNames* classes = nullptr;  // new_texts: a column of them holds labels and is no text
  std::vector<std::string> texts = {};  // new_texts: columns that the user has named, in place of the run's
  bool labels = false;                  // new_texts: the table must have labels
};

/// What is read of a table, and as what.
struct TableReading {
  enum class Role { none, label, flag, text, weight, group };

  std::string file;
  const TableFormat* format = nullptr;  // null: no table, or a file that cannot be read
  Dialect dialect;                      // of columns
  ColumnSample sample;                  // without columns: of a format that has none
  std::vector<Role> roles;              // of the sample's columns
  ColumnChoice choice;                  // what reads the rows
  LabelledSourceConfig keys;            // the configuration, with the columns that were found
  std::string said;  // in one line: what was found, or is read, and what is not; empty: nothing to say

  bool has_columns() const { return format != nullptr && format->fields == TableFormat::Fields::columns; }
};

/// Throws ConfigError or Error, naming what to set, where a table can be read in several ways: where several columns
/// could have the labels that a model needs, or the texts; where the columns that are named for the texts have labels;
/// and for new texts without a column of the run's names, unless the first row looks like a header or has a class.
TableReading understand(std::string_view content, const std::string& file, const TableFormat& format,
                        const TableWish& wish);

/// Sets header, label_column and text_columns where they are unset, and multi_label where labels are lists or columns
/// of which not exactly one is 1, by the first training table. Returns what was found, in one line for the log; empty
/// when nothing was. A file that cannot be read gives nothing: its reader reports it. Throws as understand() does.
std::string find_columns(LabelledSourceConfig& config, bool classifies = true);

}  // namespace capstan
