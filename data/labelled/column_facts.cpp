// Each column is summed up once, as shares of its values that are words, numbers, dates and the like.
#include "data/labelled/column_facts.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string_view>

#include <fmt/core.h>

#include "core/strings/strings.hpp"
#include "data/files/split.hpp"
#include "data/formats/row_labels.hpp"

namespace capstan {
namespace {

using Words = std::set<std::string>;

// Whole names of columns of labels, and words that such names contain.
const Words label_names = {"label", "labels", "class", "category", "sentiment", "topic", "target", "intent",
                           "tag",   "rating", "stars", "polarity", "emotion",   "score", "genre",  "grade"};
const Words label_words = {"label", "labels",   "class",   "classes", "category", "categories", "sentiment",
                           "topic", "target",   "targets", "intent",  "tag",      "tags",       "rating",
                           "stars", "polarity", "emotion", "genre",   "grade",    "is"};
const Words text_names = {"text",    "review", "sentence", "body",        "content", "message",
                          "comment", "tweet",  "question", "description", "document"};
// Usual names that tell a header from a row, but not what to read.
const Words other_names = {"title",  "answer", "id",      "idx",        "index",   "name",   "date",
                           "source", "query",  "premise", "hypothesis", "subject", "summary"};
// Beside a column of text_names or each other, these are a part of the text.
const Words part_names = {"title",      "headline", "subject", "abstract", "premise",
                          "hypothesis", "answer",   "query",   "context",  "passage"};
const Words identifiers = {"id", "ids", "idx", "index", "uuid", "guid", "key", "code"};
// Words of columns that say something else of a text than its label.
const Words remarks = {"date",   "datetime", "time",       "timestamp",   "created",  "updated",  "year",    "month",
                       "day",    "split",    "fold",       "subset",      "source",   "url",      "link",    "href",
                       "user",   "username", "email",      "file",        "filename", "path",     "count",   "length",
                       "number", "nr",       "confidence", "probability", "location", "timezone", "unnamed", "coord"};

/// "PassengerId", "passenger_id" -> {"passenger", "id"}.
Words words_of(const std::string& name) {
  Words words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.insert(lower_case(word));
    word.clear();
  };
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalpha(byte) == 0 && byte < 128) {
      end_word();
      continue;
    }
    if (std::isupper(byte) != 0 && !word.empty() && std::islower(static_cast<unsigned char>(word.back())) != 0)
      end_word();
    word += c;
  }
  end_word();
  return words;
}

bool any_of(const Words& words, const Words& known) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return known.count(word) > 0; });
}

// With fewer than rows_needed rows, values say little. A column of labels has at least examples_per_class rows per
// label.
constexpr size_t rows_needed = 20, examples_per_class = 5;

bool is_beyond_ascii(char c) { return static_cast<unsigned char>(c) > 127; }

/// Does a value hold a blank or a character beyond ASCII? Texts do, in scripts without blanks too; identifiers do not.
bool has_words(std::string_view value) {
  return std::any_of(value.begin(), value.end(), [](char c) { return c == ' ' || is_beyond_ascii(c); });
}

/// Are there three words or, in a script without blanks, eight characters? Names of people and places have fewer.
bool is_prose(std::string_view value) {
  constexpr std::ptrdiff_t blanks_needed = 2, bytes_needed = 24;
  const auto blanks = std::count(value.begin(), value.end(), ' ');
  return blanks >= blanks_needed ||
         (blanks == 0 && std::count_if(value.begin(), value.end(), is_beyond_ascii) >= bytes_needed);
}

/// Is a value a date: 2024-01-31, 31.1.2024, 1/31/24 10:30?
bool is_date(std::string_view value) {
  const auto digits = std::count_if(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto parts = std::count_if(value.begin(), value.end(), [](char c) { return c == '-' || c == '/' || c == '.'; });
  return digits >= 4 && parts >= 2 && value.find_first_not_of("0123456789-/.: TZ+") == std::string_view::npos;
}

}  // namespace

ColumnName::ColumnName(const std::string& name) {
  const std::string whole = lower_case(name);
  const Words words = words_of(name);
  const bool identifier = any_of(words, identifiers), remark = any_of(words, remarks);
  if (whole == "label" || whole == "labels")
    label = 4;
  else if (label_names.count(whole) > 0)
    label = 3;
  else if (any_of(words, label_words) && !remark)
    label = identifier && words.count("index") == 0 ? 1 : 2;  // "Class Index" is the label of AG News
  if (text_names.count(whole) > 0)
    text = 2;
  else if (any_of(words, text_names) && !identifier && !remark)
    text = 1;
  part = text > 1 || part_names.count(whole) > 0;
  other = label == 0 && (identifier || remark || whole == "name" || whole == "#");
  usual = label > 2 || text > 1 || other_names.count(whole) > 0 || words.count("unnamed") > 0;
  const bool one_name = name.find(' ') == std::string::npos && name.find('_') != std::string::npos;
  usual = usual || (one_name && (label > 0 || text > 0 || other));
}

bool may_name_column(const std::string& field) {
  constexpr size_t longest = 40;
  if (field == "#") return true;
  if (field.empty() || field.size() > longest || std::isdigit(static_cast<unsigned char>(field[0])) != 0) return false;
  const auto is_letter = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return std::isalnum(byte) != 0 || byte > 127;
  };
  const auto fits = [&](char c) {
    return is_letter(c) || std::string("_-. #?()/:%&[]+*'=<>|").find(c) != std::string::npos;
  };
  return std::any_of(field.begin(), field.end(), is_letter) && std::all_of(field.begin(), field.end(), fits) &&
         field.find("://") == std::string::npos && std::count(field.begin(), field.end(), ' ') < 3;
}

std::string without_number(const std::string& name) {
  const size_t last = name.size() - std::min<size_t>(name.size(), 1);
  const bool numbered = name.size() > 1 && (std::isdigit(static_cast<unsigned char>(name[last])) != 0 ||
                                            std::string("_- ").find(name[last - 1]) != std::string::npos);
  return numbered ? name.substr(0, last) : name;
}

bool are_numbers_of_columns(const std::vector<std::string>& fields) {
  const size_t first = !fields.empty() && fields.front().empty() ? 1 : 0;  // pandas does not name its index
  for (size_t c = first; c < fields.size(); ++c)
    if (fields[c] != std::to_string(c - first)) return false;
  return fields.size() > first + 1;
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size();
}

ColumnFacts facts_of_column(const TableRows& rows, size_t column, size_t begin) {
  constexpr double large = 1e6;
  const std::string first(label_text(rows.front()[column]));
  const double row_share = 1 / static_cast<double>(std::max<size_t>(rows.size() - begin, 1));
  ColumnFacts facts;
  facts.rows = rows.size() - begin;
  std::set<std::string> different;
  bool lists = true, several = false, shares = facts.rows > 0;
  for (size_t r = begin; r < rows.size(); ++r) {
    if (column >= rows[r].size()) continue;
    const std::string value(label_text(rows[r][column]));
    different.insert(value);
    const auto listed = lists ? listed_labels(value) : std::nullopt;
    lists = listed.has_value();
    several = several || (listed && listed->size() != 1);
    facts.mean_bytes += row_share * static_cast<double>(rows[r][column].size());
    facts.words += has_words(value) ? row_share : 0;
    facts.prose += is_prose(value) ? row_share : 0;
    facts.filled += value.empty() ? 0 : row_share;
    facts.dates += is_date(value) ? row_share : 0;
    facts.splits += names_split(value) ? row_share : 0;
    const double number = is_number(value) ? std::strtod(value.c_str(), nullptr) : -1;
    shares = shares && number >= 0 && number <= 1;
    if (!is_number(value)) continue;
    facts.numbers += row_share;
    facts.fractions += std::floor(number) != number ? row_share : 0;
    facts.large += std::abs(number) >= large ? row_share : 0;
    facts.flags += number == 0 || number == 1 ? 1 : 0;
  }
  facts.different = different.size();
  facts.repeats_first = different.count(first) > 0;
  facts.lists = lists && several;
  facts.shares = shares && facts.fractions > 0;
  return facts;
}

bool ColumnFacts::looks_like_labels() const {
  return rows >= rows_needed && different >= 2 && different * examples_per_class <= rows && !cannot_be_labels();
}

bool ColumnFacts::cannot_be_labels() const {
  constexpr double nearly_different = 0.9;
  constexpr size_t many = 20;
  if (rows < rows_needed) return false;
  return static_cast<double>(different) >= nearly_different * static_cast<double>(rows) || filled < most ||
         (fractions > 0 && different > many) || large >= nearly_all || dates >= nearly_all || splits >= nearly_all;
}

bool ColumnFacts::looks_like_texts() const { return prose >= most && !looks_like_labels(); }

std::string ColumnFacts::kind() const {
  if (filled < most) return "mostly empty";
  if (dates >= nearly_all) return "dates";
  if (splits >= nearly_all) return "names of splits";
  if (looks_like_labels() || (rows > 0 && flags == rows)) return fmt::format("{} different values", different);
  if (numbers >= nearly_all) return different == rows ? "numbers, all different" : "numbers";
  if (looks_like_texts()) return fmt::format("texts, of {:.0f} bytes in the mean", mean_bytes);
  return fmt::format("{} different values, of {:.0f} bytes in the mean", different, mean_bytes);
}

}  // namespace capstan
