// The first rows of the first table of a configuration, from which data/labelled and data/pairs find its columns.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "data/formats/table_format.hpp"

namespace capstan {

struct TableHead {
  std::string file, content;                   // of the first file; content: its beginning
  const TableFormat* format = nullptr;         // null where there are no rows
  std::vector<std::vector<std::string>> rows;  // of a format with keys: the keys, then the values of each row

  bool has_keys() const { return format != nullptr && format->fields == TableFormat::Fields::keys; }
};

/// Up to `rows` rows; none of formats without fields, and of files that cannot be read: their reader reports it.
/// `format`: data.format.
TableHead head_of_tables(const std::vector<std::string>& paths, const std::string& format, size_t rows,
                         const Dialect& dialect = {});

/// The column of the first row whose name, in lower case and without blanks around it, is one of `names`; -1 unless
/// exactly one is.
int column_named(const std::vector<std::string>& header, const std::set<std::string>& names);

}  // namespace capstan
