#include "data/files/label_text.hpp"

#include <algorithm>
#include <set>

#include "core/base/error.hpp"
#include "core/strings/affixes.hpp"

namespace capstan {
namespace {

constexpr std::string_view blanks = " \t\r\v\f";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(blanks);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace

void check_labels(const std::vector<std::string>& labels, const std::string& place) {
  std::set<std::string_view> seen;
  for (const std::string& label : labels) {
    if (label.empty()) throw Error(fmt::format("{}: label {} of {} is empty", place, seen.size() + 1, labels.size()));
    if (!seen.insert(label).second)
      throw Error(fmt::format("{}: the label '{}' is given twice", place, label.substr(0, 100)));
  }
}

std::vector<std::string> split_labels(std::string_view text, std::string_view separator, const std::string& place) {
  std::vector<std::string> labels;
  if (trimmed(text).empty()) return labels;
  const bool by_blanks = trimmed(separator).empty();  // runs of them are one separator
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    const std::string_view label = trimmed(text.substr(at, end - at));
    if (!label.empty() || !by_blanks) labels.emplace_back(label);
    at = end + separator.size();
  }
  check_labels(labels, place);
  return labels;
}

FastTextLine fasttext_line(std::string_view line) {
  constexpr std::string_view prefix = "__label__";
  FastTextLine result;
  for (size_t at = 0; at < line.size();) {
    const size_t word = std::min(line.find_first_not_of(blanks, at), line.size());
    const size_t end = std::min(line.find_first_of(blanks, word), line.size());
    const std::string_view token = line.substr(word, end - word);
    if (starts_with(token, prefix))
      result.labels.emplace_back(token.substr(prefix.size()));
    else
      result.text += line.substr(at, end - at);
    at = end;
  }
  result.text = trimmed(result.text);
  return result;
}

}  // namespace capstan
