#include "data/labelled/column_roles.hpp"

#include <algorithm>
#include <set>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "data/formats/row_labels.hpp"

namespace capstan {
namespace {

using Columns = std::vector<size_t>;

bool is_in(const Columns& columns, size_t column) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

/// The columns, without those that are left out, for which `wanted` is true.
template <class Wanted>
Columns columns_where(const ColumnSample& sample, const Columns& left_out, const Wanted& wanted) {
  Columns found;
  for (size_t c = 0; c < sample.columns(); ++c)
    if (!is_in(left_out, c) && wanted(c)) found.push_back(c);
  return found;
}

/// The only column whose name says that it has the texts.
std::optional<size_t> named_text(const ColumnSample& sample, const std::vector<bool>& allowed) {
  for (int surely = 2; surely > 0; --surely) {
    const Columns named =
        columns_where(sample, {}, [&](size_t c) { return allowed[c] && sample.name(c).text == surely; });
    if (named.size() == 1) return named.front();
    if (named.size() > 1) break;
  }
  return std::nullopt;
}

/// The last column, or the longest of words where that is much longer; of `keys`, which have no order, the longest.
std::optional<size_t> longest_text(const ColumnSample& sample, const std::vector<bool>& allowed, bool keys) {
  constexpr double much_longer = 4;
  const auto bytes = [&](size_t c) { return sample.facts(c).mean_bytes; };
  const auto shorter = [&](size_t a, size_t b) { return bytes(a) < bytes(b); };
  const Columns all = columns_where(sample, {}, [&](size_t c) { return allowed[c]; });
  Columns of_words;
  for (const size_t c : all)
    if (keys || sample.facts(c).words >= ColumnFacts::most) of_words.push_back(c);
  if (all.empty()) return std::nullopt;
  if (of_words.empty()) return all.back();
  const size_t longest = *std::max_element(of_words.begin(), of_words.end(), shorter);
  return keys || bytes(longest) > much_longer * bytes(all.back()) ? longest : all.back();
}

LabelSearch label_by_values(const ColumnSample& sample, bool single, const Columns& left_out) {
  const auto may_have_labels = [&](size_t c) {
    return !sample.name(c).other && sample.name(c).text == 0 && !(single && sample.facts(c).cannot_be_labels());
  };
  std::vector<bool> all(sample.columns(), true);
  for (const size_t c : left_out) all[c] = false;
  auto text = named_text(sample, all);
  if (!text) text = longest_text(sample, all, false);
  const Columns likely = columns_where(
      sample, left_out, [&](size_t c) { return single && may_have_labels(c) && sample.facts(c).looks_like_labels(); });
  if (likely.size() == 1) return {likely.front()};
  if (likely.size() > 1) return {std::nullopt, likely};
  const Columns left = columns_where(sample, left_out, [&](size_t c) { return may_have_labels(c) && c != text; });
  if (left.size() == 1) return {left.front()};
  return {std::nullopt, left};
}

LabelSearch label_of_rows(const ColumnSample& sample, bool single, const Columns& left_out) {
  const bool first = !is_in(left_out, 0);
  if (first && (!single || !sample.facts(0).cannot_be_labels())) return {0};
  const Columns likely = columns_where(sample, left_out, [&](size_t c) { return sample.facts(c).looks_like_labels(); });
  if (likely.size() == 1) return {likely.front()};
  // Reading the labels refuses identifiers.
  if (likely.empty() && first && sample.facts(0).different == sample.rows()) return {0};
  return {std::nullopt, likely};
}

LabelSearch label_by_names(const ColumnSample& sample, bool single, const Columns& left_out) {
  for (int surely = 4; surely > 0; --surely) {
    const Columns named = columns_where(sample, left_out, [&](size_t c) {
      return sample.name(c).label == surely && !(surely < 4 && single && sample.facts(c).cannot_be_labels());
    });
    Columns likely;
    for (const size_t c : named)
      if (sample.facts(c).looks_like_labels()) likely.push_back(c);
    if (single && likely.size() == 1) return {likely.front()};
    if (named.size() == 1) return {named.front()};
    if (named.size() > 1) return {std::nullopt, named};
  }
  return label_by_values(sample, single, left_out);
}

bool holds_classes(const TableRows& rows, size_t begin, size_t column, const ClassNames& classes,
                   const std::string& separator, bool numbers) {
  constexpr size_t others = 20;  // one value of 20 may be no class
  size_t known = 0, total = 0;
  for (size_t r = begin; r < rows.size(); ++r) {
    if (column >= rows[r].size()) continue;
    const std::string value(label_text(rows[r][column]));
    for (const std::string& label : separator.empty() ? std::vector{value} : split_labels(value, separator)) {
      const auto number = classes.find(label);
      total += label.empty() ? 0 : 1;
      known += number && (numbers || classes.names()[static_cast<size_t>(*number)] == label) ? 1 : 0;
    }
  }
  return known > 0 && others * (total - known) <= total;
}

/// Do the names say that the columns are parts of one text: title and body, sentence1 and sentence2?
bool are_parts(const ColumnSample& sample, const Columns& columns) {
  std::set<std::string> names, stems;
  bool parts = true;
  for (const size_t c : columns) {
    parts = parts && sample.name(c).part;
    names.insert(sample.first_row()[c]);
    stems.insert(without_number(sample.first_row()[c]));
  }
  return sample.begins_with_names() && names.size() == columns.size() && (parts || stems.size() == 1);
}

}  // namespace

LabelSearch find_label(const ColumnSample& sample, bool single, const Columns& left_out) {
  if (sample.columns() == 0) return {};
  const LabelSearch found =
      sample.begins_with_names() ? label_by_names(sample, single, left_out) : label_of_rows(sample, single, left_out);
  // Of several columns of shares, such as toxic and obscene of 0.4, the one with the fewest values is not the label.
  if (!single || !found.column || !sample.facts(*found.column).shares || sample.name(*found.column).label > 2)
    return found;
  const Columns shares = columns_where(sample, left_out, [&](size_t c) { return sample.facts(c).shares; });
  return shares.size() == 1 ? found : LabelSearch{std::nullopt, shares};
}

std::vector<size_t> columns_of_classes(const TableRows& rows, const ColumnSample& sample, const ClassNames& classes,
                                       const std::string& separator) {
  Columns found;
  for (const bool numbers : {false, true})
    for (size_t c = 0; c < sample.columns() && (!numbers || found.empty()); ++c)
      if (!(numbers && sample.name(c).other) &&  // 1, 2, 3 in "id" are no numbers of classes
          holds_classes(rows, sample.begins_with_names() ? 1 : 0, c, classes, separator, numbers))
        found.push_back(c);
  return found;
}

TextSearch find_texts(const ColumnSample& sample, const std::vector<bool>& allowed, bool keys) {
  auto named = keys ? sample.index_of("text") : std::nullopt;
  if (!named || !allowed[*named]) named = named_text(sample, allowed);
  TextSearch found{named ? named : longest_text(sample, allowed, keys)};
  if (!found.main) return found;
  const Columns others = columns_where(sample, {*found.main}, [&](size_t c) {
    const ColumnName& name = sample.name(c);
    const bool namesake = sample.begins_with_names() && sample.first_row()[c] == sample.first_row()[*found.main] &&
                          sample.facts(c).words >= ColumnFacts::most;
    return allowed[c] && !name.other && name.label == 0 && (namesake || sample.facts(c).looks_like_texts());
  });
  found.columns = {*found.main};
  for (const size_t c : others)
    if (!named || are_parts(sample, {*named, c})) found.columns.push_back(c);
  std::sort(found.columns.begin(), found.columns.end());
  found.belong_together = found.columns.size() == 1 || are_parts(sample, found.columns);
  return found;
}

void ask_for_texts(const ColumnSample& sample, const TextSearch& found, const std::string& file, bool command) {
  std::vector<std::string> names;
  for (const size_t c : found.columns) names.push_back(sample.name_of(c));
  const std::string main = sample.name_of(*found.main),
                    problem = fmt::format("{}: the columns {} look like texts; read all of them with ", file,
                                          join_first(names, " and "));
  if (command)
    throw Error(fmt::format("{}--text-column {}, or one, as with --text-column {}", problem,
                            join(names, " --text-column "), main));
  throw ConfigError(fmt::format("data: {}data.text_columns=[{}], or one, as with data.text_columns=[{}]", problem,
                                join(names), main));
}

void refuse_divided_texts(const ColumnSample& sample, const TableRows& rows, const std::string& file) {
  constexpr size_t min_rows = 3;
  const size_t columns = sample.columns();
  if (sample.begins_with_names() || columns < 3 || rows.size() < min_rows) return;
  const auto goes_on = [&](const std::vector<std::string>& row) {
    return row.size() == columns && row.back().size() > 1 && row.back()[0] == ' ' && row.back()[1] != ' ';
  };
  if (10 * std::count_if(rows.begin(), rows.end(), goes_on) < static_cast<std::ptrdiff_t>(9 * rows.size())) return;
  throw ConfigError(fmt::format(
      "data: {}: column {} begins with a blank in nearly all rows, as a text does that is divided by the delimiter in "
      "it; put the texts in double quotes (or set data.quote=single for single ones), write TSV, or set "
      "data.text_columns if it is right",
      file, columns));
}

}  // namespace capstan
