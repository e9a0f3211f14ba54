// Reads the rows of labelled data, for labelled_source. Tables are read row by row, by way of their format
// (table_format.hpp), large ones from a mapped file whose pages are given back.
// Every distinct set of label names is kept once, and rows have its number.
// tests/data/labelled/test_labelled_source.cpp, test_tables_people_have.cpp.
#include "data/labelled/labelled_rows.hpp"

#include <filesystem>
#include <limits>
#include <optional>

#include "core/base/error.hpp"
#include "core/io/mapped_file.hpp"
#include "data/checks/copies.hpp"
#include "data/files/file_list.hpp"
#include "data/files/text_file.hpp"

namespace capstan {
namespace {

constexpr uint64_t large_file = uint64_t{64} << 20;  // bytes from which on a file is mapped, not held in memory

/// A file's content, mapped if the file is large. Bytes of a mapped file that were passed leave the memory of this
/// process. The content may be passed several times; only the first pass counts as progress.
class TableContent {
 public:
  TableContent(const std::string& path, Progress& progress) : progress_(progress) {
    std::error_code unknown;
    if (!is_packed_name(path) && std::filesystem::is_regular_file(path, unknown) &&
        std::filesystem::file_size(path, unknown) >= large_file)
      mapped_.emplace(path);
    else
      held_ = read_text_file(path);
  }

  std::string_view all() const {
    return mapped_ ? std::string_view(reinterpret_cast<const char*>(mapped_->data()), mapped_->size()) : held_;
  }
  /// Call it when the bytes in front of `end` were read.
  void passed(size_t end) {
    constexpr size_t step = size_t{8} << 20;
    if (end < passed_ + step && end < all().size()) return;
    if (mapped_) mapped_->release(passed_, end);
    if (end > counted_) {
      progress_.add(static_cast<double>(end - counted_));
      counted_ = end;
    }
    passed_ = end;
  }
  void begin_again() { passed_ = 0; }

 private:
  Progress& progress_;
  std::optional<MappedFile> mapped_;
  std::string held_;
  size_t passed_ = 0, counted_ = 0;  // ends of the bytes that this pass has passed, and of those counted as progress
};

/// Gives rows that a group or copies of a text connect the same hash, so that they are held out together. Throws
/// ConfigError where all are connected.
void connect_groups(std::vector<LabelledRow>& rows, const std::vector<uint64_t>& groups, const std::string& column) {
  std::vector<uint64_t> texts;
  for (const LabelledRow& row : rows) texts.push_back(row.hash);
  const std::vector<uint64_t> connected = connected_hashes(texts, groups);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].hash = connected[i];
  if (find_copies(connected).size() + 1 < rows.size()) return;
  throw ConfigError(
      fmt::format("data.group_column: all texts are of one group in column '{}', or copies connect the "
                  "groups, so that none can be held out; name another column",
                  column));
}

}  // namespace

LabelledRow RowTexts::add(LabelledText&& row, uint32_t file) {
  if (row.text.size() > std::numeric_limits<uint32_t>::max())
    throw Error(fmt::format("a text of line {} has more than 4 GB; divide it", row.line));
  LabelledRow added{texts_.size(), row.line, static_cast<uint32_t>(row.text.size()), file};
  added.weight = row.weight;
  added.hash = copy_hash(row.text);
  for (size_t i = 0; i + 1 < columns_; ++i) {
    const uint64_t boundary = row.boundaries.at(i);
    texts_.append(&boundary, sizeof(boundary));
  }
  texts_.append(row.text);
  if (row.labels.empty() && !row.label.empty()) row.labels = {std::move(row.label)};
  const auto [known, is_new] = numbers_.emplace(std::move(row.labels), static_cast<int32_t>(labels_.size()));
  added.label_names = known->second;
  if (is_new) labels_.push_back(known->first);
  return added;
}

LabelledText RowTexts::read(const LabelledRow& row) const {
  LabelledText result;
  result.line = row.line;
  int64_t at = row.text;
  for (size_t i = 0; i + 1 < columns_; ++i) {
    uint64_t boundary = 0;
    texts_.read(at, &boundary, sizeof(boundary));
    result.boundaries.push_back(boundary);
    at += static_cast<int64_t>(sizeof(boundary));
  }
  result.text.resize(row.size);
  texts_.read(at, result.text.data(), row.size);
  return result;
}

std::string place_of(const LabelledRow& row, const LabelledCheck& check) {
  return fmt::format("{}:{}", check.files()[row.file].reading.file, row.line);
}

std::vector<LabelledRow> read_tables(const std::vector<std::string>& paths, Split split, const Loading& loading,
                                     RowTexts& texts) {
  BadRows& bad = loading.bad;
  std::vector<LabelledRow> rows;
  std::vector<uint64_t> groups;  // of the rows, where there is a column of groups
  Progress progress(loading.log, "reading", 0);
  for (const FoundFile& file : list_files(paths)) {
    progress.begin("reading " + file.path);
    TableContent content(file.path, progress);
    const int64_t bad_before = bad.count();
    const size_t rows_before = rows.size();
    const TableFormat& format = format_of(file.path, loading.config.table_format());
    TableReading reading =
        understand(content.all(), file.path, format, {loading.config, TableWish::Purpose::read, loading.classifies});
    ColumnChoice columns = reading.choice;
    if (split != Split::train) columns.weight = columns.group = "";  // they count in training alone
    const uint32_t number = loading.check.add_file(split, std::move(reading));
    bool any_without_weight = false;
    read_table(content.all(), file.path, format, columns, bad, loading.utf8, [&](LabelledText&& row, size_t end) {
      content.passed(end);
      if (row.weight == 0) {
        any_without_weight = true;
        return;
      }
      if (!columns.group.empty()) groups.push_back(copy_hash(row.group.empty() ? row.text : row.group));
      rows.push_back(texts.add(std::move(row), number));
    });
    const bool any = rows.size() > rows_before;
    content.begin_again();  // the check counts line ends and the like in all bytes, also in those that are no rows
    loading.check.set_content(number, content.all(), [&](size_t end) { content.passed(end); });
    if (any) loading.check.refuse_other_columns(number);
    if (!any && bad.count() == bad_before)
      throw Error(
          fmt::format("{}: {}", file.path,
                      any_without_weight ? "all rows have weight 0 (data.weight_column)" : "holds no examples"));
  }
  if (!groups.empty()) connect_groups(rows, groups, loading.config.group_column);
  return rows;
}

}  // namespace capstan
