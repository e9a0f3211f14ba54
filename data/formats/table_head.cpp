// Reads the first row of the first table, to find columns by name before all rows are read. Whatever cannot be read
// gives no row here, and the reader that comes later reports it: tests/data/labelled/test_labelled_source.cpp.
#include "data/formats/table_head.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "data/files/file_list.hpp"
#include "data/files/text_file.hpp"

namespace capstan {

/// The beginning of a file, about a megabyte, up to the end of a line: enough for a sample.
static std::string head_of(const std::string& path) {
  constexpr size_t enough = size_t{1} << 20;
  TextReader reader(path);
  std::string head;
  while (head.size() < enough && !reader.at_end()) head += reader.piece();
  if (!reader.at_end()) head.erase(std::min(head.rfind('\n'), head.size() - 1) + 1);
  return head;
}

TableHead head_of_tables(const std::vector<std::string>& paths, const std::string& format, const Dialect& dialect) {
  try {
    const auto files = list_files(paths);
    if (files.empty() || format == format_of_folders) return {};
    TableHead head{files.front().path, "", &format_of(files.front().path, format), {}};
    if (head.format->fields == TableFormat::Fields::none) return {};
    head.content = head_of(head.file);
    const auto rows = first_rows(head.content, head.file, *head.format, 1, dialect);
    if (!rows.empty()) head.first_row = rows.front();
    return head;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace capstan
