// The format fasttext of tables (table_format.hpp): lines of text, with labels among their words.
// tests/data/labelled/test_multi_label.cpp ("lines of fastText with one label each").
#include "core/strings/strings.hpp"
#include "data/formats/line_rows.hpp"
#include "data/formats/row_labels.hpp"

namespace capstan {
namespace {

constexpr std::string_view word_blanks = " \t\r\v\f", label_prefix = "__label__";

LabelledText read_fasttext_line(std::string_view line, const std::string& place, const ColumnChoice& choice) {
  LabelledText row;
  std::vector<std::string> labels;
  for (size_t at = 0; at < line.size();) {
    const size_t word = std::min(line.find_first_not_of(word_blanks, at), line.size());
    const size_t end = std::min(line.find_first_of(word_blanks, word), line.size());
    const std::string_view token = line.substr(word, end - word);
    if (starts_with(token, label_prefix))
      labels.emplace_back(token.substr(label_prefix.size()));
    else
      row.text += line.substr(at, end - at);
    at = end;
  }
  row.text = trimmed(row.text, word_blanks);
  if (!choice.labels) return row;
  if (choice.label_separator.empty() && labels.size() != 1)
    throw Error(
        fmt::format("{}: found {} labels (words that begin with __label__) instead of one; for any number of "
                    "labels per text, set data.multi_label: true",
                    place, labels.size()));
  set_labels(row, std::move(labels), choice, place);
  return row;
}

}  // namespace

TableFormat fasttext_format() {
  return {"fasttext", [](const TableInput& input) {
            if (input.choice.labels && !input.choice.empty_labels &&
                input.content.find(label_prefix) == std::string_view::npos)
              throw Error(
                  fmt::format("{}: was read as lines of fastText (data.format: fasttext), but no word begins with "
                              "__label__; for a table set data.format=auto",
                              input.file));
            return read_lines(input, [&](const Line& line, const std::string& place) {
              return read_fasttext_line(line.text, place, input.choice);
            });
          }};
}

}  // namespace capstan
