#include "run/inputs/input_form.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/strings/strings.hpp"
#include "data/formats/table_columns.hpp"
#include "data/labelled/column_facts.hpp"

namespace capstan {
namespace {

/// Is the input a folder in which each file is a text of one column?
bool are_files(const TextInputOptions& options, const SourceConfig& data) {
  if (options.format != format_by_name) return options.format == format_of_folders;
  const auto* const labelled = std::get_if<LabelledSourceConfig>(&data);
  if (labelled == nullptr || !options.text_columns.empty()) return false;
  std::error_code unknown;
  if (facts_of(data).text.columns == 1 && std::filesystem::is_directory(options.file, unknown)) return true;
  return labelled->format == format_of_folders && options.file != "-" && format_by_ending(options.file) == nullptr;
}

/// Have all lines that are not empty equally many tabs, and so more columns than a text of the run? Lines of several
/// texts have tabs between them without being a table, unless the name says so.
bool are_rows_of_tabs(const std::vector<std::string>& lines, size_t texts, bool is_table) {
  std::optional<size_t> columns;
  for (const std::string& line : lines) {
    if (line.empty() || line == "\r") continue;
    const size_t count = static_cast<size_t>(std::count(line.begin(), line.end(), '\t')) + 1;
    if (columns && *columns != count) return is_table;
    columns = count;
  }
  if (is_table) return !(texts > 1 && columns == texts);
  return columns && *columns > texts;
}

/// The names or keys of the texts; empty where they are numbers.
std::vector<std::string> text_names(const TextInputOptions& options, const SourceConfig& data,
                                    const TableFormat& format) {
  std::vector<std::string> names = options.text_columns;
  if (const auto* const pairs = std::get_if<PairSourceConfig>(&data); pairs != nullptr && names.empty())
    names = pair_columns(*pairs, format).text;
  if (const auto* const labelled = std::get_if<LabelledSourceConfig>(&data); labelled != nullptr && names.empty())
    names = labelled->text_columns;
  if (names.empty() && format.fields == TableFormat::Fields::keys) names = {"text"};
  return std::any_of(names.begin(), names.end(), parse_integer) ? std::vector<std::string>() : names;
}

/// How surely a line is the first of a table.
enum class Sureness { none, in_doubt, sure };

/// Sure is a label as fastText writes it, or the names or keys of the texts and others. In doubt are other keys, and
/// fields of which one is a class of the run, or all are names that columns usually have, or the names of the texts
/// alone.
Sureness begins_table(const std::string& line, const TableFormat& format, const TextInputOptions& options,
                      const SourceConfig& data) {
  if (format.fields == TableFormat::Fields::none) {
    const auto* const labelled = std::get_if<LabelledSourceConfig>(&data);
    if (labelled == nullptr || labelled->format != format.name) return Sureness::none;
    BadRows bad(OnError::skip);
    ColumnChoice columns;
    columns.label_separator = LabelledSourceConfig::default_label_separator;
    columns.empty_labels = true;
    const auto rows = read_table(line, "stdin", format, columns, bad);
    return rows.size() == 1 && !rows.front().labels.empty() ? Sureness::sure : Sureness::none;
  }
  // The line is given twice, because one row alone proves no unusual delimiter.
  const auto rows = first_rows(line + '\n' + line, "stdin", format, 1);
  if (rows.empty()) return Sureness::none;
  const bool keys = format.fields == TableFormat::Fields::keys;
  const std::vector<std::string> names = column_names(rows.front()), wanted = text_names(options, data, format);
  const auto is_in = [](const std::vector<std::string>& list) {
    return [&](const std::string& name) { return std::find(list.begin(), list.end(), name) != list.end(); };
  };
  if (!wanted.empty() && std::all_of(wanted.begin(), wanted.end(), is_in(names)) &&
      (keys || names.size() > wanted.size()))
    return Sureness::sure;
  const bool usual =
      std::all_of(names.begin(), names.end(), [](const std::string& name) { return ColumnName(name).usual; });
  const bool has_class = std::any_of(names.begin(), names.end(), is_in(options.classes));
  const bool doubtful = keys || names == wanted || (names.size() > 1 && (usual || has_class));
  return doubtful ? Sureness::in_doubt : Sureness::none;
}

InputForm table(const TableFormat* format) {
  InputForm form;
  if (format != nullptr) form.kind = InputForm::Kind::table;
  form.format = format;
  return form;
}

}  // namespace

bool has_tables(const SourceConfig& data) {
  return std::holds_alternative<LabelledSourceConfig>(data) || std::holds_alternative<PairSourceConfig>(data);
}

InputForm form_of(const TextInputOptions& options, const SourceConfig& data,
                  const std::function<std::vector<std::string>(size_t count)>& first_lines) {
  constexpr size_t lines_read = 20;
  if (are_files(options, data)) return {InputForm::Kind::files};
  if (options.format != format_by_name) return table(format_named(options.format));
  const TableFormat *const tsv = format_named("tsv"), *const by_ending = format_by_ending(options.file);
  if (by_ending != nullptr && by_ending != tsv) return table(by_ending);
  const auto* const labelled = std::get_if<LabelledSourceConfig>(&data);
  const TableFormat* const trained = labelled != nullptr ? format_named(labelled->table_format()) : nullptr;
  const bool file = options.file != "-", of_lines = trained != nullptr && trained->fields == TableFormat::Fields::none;
  if (of_lines && (file || options.labels)) return table(trained);
  if (by_ending == tsv && (options.labels || !options.text_columns.empty())) return table(tsv);
  if (!has_tables(data)) return table(options.text_columns.empty() ? nullptr : tsv);
  if (file && trained != nullptr && trained != tsv) return table(trained);
  const std::vector<std::string> lines = first_lines(lines_read);
  if (file && are_rows_of_tabs(lines, facts_of(data).text.columns, by_ending == tsv)) return table(tsv);
  InputForm form = table(options.text_columns.empty() ? nullptr : tsv);
  for (const TableFormat& format : table_formats()) {
    const Sureness sureness = lines.empty() ? Sureness::none : begins_table(lines.front(), format, options, data);
    if (sureness == Sureness::sure) {
      form = table(&format);
      form.by_first_line = true;
      return form;
    }
    if (sureness == Sureness::in_doubt && form.doubtful == nullptr) form.doubtful = &format;
  }
  return form;
}

}  // namespace capstan
