// The first rows of the tables of a configuration, from which its columns are found.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "data/files/table_reader.hpp"

namespace capstan {

struct TableHead {
  std::string file, content;  // of the first file; content: its beginning
  TableFormat format = TableFormat::by_name;
  std::vector<std::vector<std::string>> rows;  // of JSONL: the keys of the first row, then the values of each
};

/// Up to `rows` rows; none of other formats, and of files that cannot be read: their reader reports it.
TableHead head_of_tables(const std::vector<std::string>& paths, TableFormat format, size_t rows);

/// The column of the first row whose name, in lower case, is one of `names`; -1 unless exactly one is.
int column_named(const std::vector<std::string>& header, const std::set<std::string>& names);

}  // namespace capstan
