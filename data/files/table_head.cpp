#include "data/files/table_head.hpp"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/json.hpp"
#include "data/files/file_list.hpp"
#include "data/files/text_file.hpp"

namespace capstan {
namespace {

/// The beginning of a file, enough for a sample, up to the end of a line.
std::string head_of(const std::string& path) {
  constexpr size_t enough = size_t{1} << 20;
  TextReader reader(path);
  std::string head;
  while (head.size() < enough && !reader.at_end()) head += reader.piece();
  if (!reader.at_end()) head.erase(std::min(head.rfind('\n'), head.size() - 1) + 1);
  return head;
}

/// Keys and values of the first objects; lists and other values as JSON writes them. None where a line is no object.
std::vector<std::vector<std::string>> first_objects(std::string_view content, size_t count) {
  std::vector<std::vector<std::string>> rows;
  while (!content.empty() && rows.size() <= count) {
    const std::string_view line = content.substr(0, content.find('\n'));
    content.remove_prefix(std::min(content.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const nlohmann::json object = try_parse_json(line);
    if (!object.is_object()) return {};
    if (rows.empty()) {
      rows.emplace_back();
      for (const auto& [key, value] : object.items()) rows.front().push_back(key);
    }
    std::vector<std::string> values;
    for (const std::string& key : rows.front()) {
      const auto found = object.find(key);
      values.push_back(found == object.end() ? "" : found->is_string() ? found->get<std::string>() : json_text(*found));
    }
    rows.push_back(std::move(values));
  }
  return rows;
}

}  // namespace

TableHead head_of_tables(const std::vector<std::string>& paths, TableFormat format, size_t rows) {
  try {
    const auto files = list_files(paths);
    if (files.empty()) return {};
    TableHead head{files.front().path, "", format, {}};
    if (format == TableFormat::by_name) head.format = format_of(head.file);
    if (head.format != TableFormat::tsv && head.format != TableFormat::csv && head.format != TableFormat::jsonl)
      return {};
    head.content = head_of(head.file);
    head.rows = head.format == TableFormat::jsonl ? first_objects(without_mark(head.content, head.file), rows)
                                                  : first_rows(head.content, head.file, head.format, rows);
    return head;
  } catch (const Error&) {
    return {};
  }
}

int column_named(const std::vector<std::string>& header, const std::set<std::string>& names) {
  int found = -1;
  for (size_t c = 0; c < header.size(); ++c) {
    std::string name = header[c];
    for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (names.count(name) == 0) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(c);
  }
  return found;
}

}  // namespace capstan
