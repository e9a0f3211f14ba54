// The lists of English words by which a column's name says what it contains. Another word can change what a new run
// reads: tests/data/labelled/test_checks.cpp.
#include "data/labelled/column_names.hpp"

#include <algorithm>
#include <cctype>
#include <set>

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

std::string in_lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// "PassengerId", "passenger_id" -> {"passenger", "id"}.
Words words_of(const std::string& name) {
  Words words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.insert(in_lower_case(word));
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

}  // namespace

ColumnName::ColumnName(const std::string& name) {
  const std::string whole = in_lower_case(name);
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

}  // namespace capstan
