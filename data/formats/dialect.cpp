// Each delimiter is tried on the first rows, with double and with single quotes. What counts is the width that most
// rows have, since the first row's own text may hold the delimiter.
#include "data/formats/dialect.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "data/formats/records.hpp"

namespace capstan {
namespace {

constexpr double min_share = 0.5;  // rows whose texts hold delimiters may lack their quotes
constexpr size_t few_rows = 3;     // fewer do not show that single quotes are more than apostrophes

/// How well a dialect divides the first rows.
struct Fit {
  char delimiter;
  double share = 0;  // of the rows with the width that most have; 0: it does not divide the first one, or most
  size_t rows = 0;
  bool quoted = false;  // have most rows a field in quotes?
  char rival = '\0';    // a delimiter that does about as well
};

Fit fit_of(std::string_view head, Dialect dialect) {
  constexpr size_t rows_read = 40;
  RecordReader reader(head, "", dialect);
  std::vector<std::vector<std::string>> rows;
  size_t quoted = 0;
  const std::string opened = std::string(1, dialect.delimiter) + dialect.quote;
  for (TableRecord record; rows.size() < rows_read && reader.next_or_none(record);) {
    if (record.is_empty_line()) continue;
    rows.push_back(record.fields);  // of a broken row, which fits no width, none
    if (record.fields.empty()) continue;
    quoted += record.text.front() == dialect.quote || record.text.find(opened) != std::string_view::npos ? 1 : 0;
  }
  Fit fit{dialect.delimiter};
  const size_t width = common_width(rows);
  const bool proves = rows.size() > 1 || dialect.delimiter == ',';  // a single row proves nothing but the comma
  if (width < 2 || rows.front().size() < 2 || !proves) return fit;
  const auto alike = std::count_if(rows.begin(), rows.end(), [&](const auto& row) { return row.size() == width; });
  fit.share = static_cast<double>(alike) / static_cast<double>(rows.size());
  fit.rows = rows.size();
  fit.quoted = 2 * quoted > rows.size();
  return fit;
}

/// Are the two readings so near that only the file's owner can tell? `better` divides at least as many rows.
bool are_near(const Fit& better, const Fit& other) {
  constexpr double near = 0.2;
  constexpr size_t few = 5;  // rows: of so few, a comma or a semicolon in each text is no surprise
  if (other.share < min_share || (better.quoted && !other.quoted)) return false;
  if (better.share == 1 && other.share < 1) return other.delimiter == ',';
  return better.rows >= few && better.share - other.share < near;
}

/// The best of the delimiters, in the order in which they are usual.
Fit best_fit(std::string_view head, char quote) {
  constexpr char delimiters[] = {',', ';', '\t', '|'};
  std::vector<Fit> fits;
  for (const char delimiter : delimiters) fits.push_back(fit_of(head, {delimiter, quote}));
  auto best = std::max_element(fits.begin(), fits.end(), [](const Fit& a, const Fit& b) {
    return std::pair(a.share, a.quoted) < std::pair(b.share, b.quoted);
  });
  if (best->share < min_share) return {','};
  for (auto other = fits.begin(); other != fits.end(); ++other)
    if (other != best && are_near(*best, *other)) best->rival = other->delimiter;
  return *best;
}

}  // namespace

std::string name_of_delimiter(char delimiter) {
  constexpr std::pair<char, const char*> names[] = {
      {',', "commas"}, {';', "semicolons"}, {'|', "bars"}, {'\t', "tabs"}};
  for (const auto& [known, name] : names)
    if (known == delimiter) return name;
  return fmt::format("'{}'", delimiter);
}

Dialect found_dialect(std::string_view content, const std::string& file, Dialect given) {
  constexpr char usual = Dialect().quote, single = '\'';
  const std::string_view head = content.substr(0, size_t{1} << 20);
  const char named = given.delimiter != '\0' ? given.delimiter : named_delimiter(head);
  const auto fit_with = [&](char quote) {
    return named != '\0' ? fit_of(head, {named, quote}) : best_fit(head, quote);
  };
  Fit fit = fit_with(given.quote);
  if (given.quote == usual && head.find(single) != std::string_view::npos) {
    const Fit other = fit_with(single);
    if (other.quoted && other.rows >= few_rows && other.share >= std::max(fit.share, min_share)) {
      fit = other;
      given.quote = single;
    }
  }
  if (fit.rival != '\0')
    throw Error(
        fmt::format("{}: its columns may be separated by {} or by {}; set data.delimiter to '{}' or '{}', or write "
                    "sep= and one of them into a first line of its own",
                    file, name_of_delimiter(fit.rival), name_of_delimiter(fit.delimiter), fit.rival, fit.delimiter));
  return {fit.delimiter, given.quote};
}

std::string unusual(const Dialect& dialect) {
  std::string said;
  if (dialect.delimiter != ',') said = "columns are separated by " + name_of_delimiter(dialect.delimiter);
  if (dialect.quote == '\'') said += said.empty() ? "fields are quoted by '" : ", and quoted by '";
  return said;
}

}  // namespace capstan
