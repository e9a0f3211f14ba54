// The first row of the first table of a configuration, from which data/labelled and data/pairs find its columns.
#pragma once

#include <string>
#include <vector>

#include "data/formats/table_format.hpp"

namespace capstan {

struct TableHead {
  std::string file, content;            // of the first file; content: its beginning
  const TableFormat* format = nullptr;  // null where there is no row
  std::vector<std::string> first_row;   // of a format with keys: the keys
};

/// No row of formats without fields, and of files that cannot be read: their reader reports it. `format`: data.format.
TableHead head_of_tables(const std::vector<std::string>& paths, const std::string& format, const Dialect& dialect = {});

}  // namespace capstan
