// Labels as rows of files hold them: several in one field, or as words of a line of fastText.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace capstan {

/// "a, b" -> {"a", "b"}: without the blanks around a label; empty text has none. Throws Error naming `place` for an
/// empty label between separators and for a label that is given twice.
std::vector<std::string> split_labels(std::string_view text, std::string_view separator, const std::string& place);

/// Throws Error naming `place` for an empty label and for one that is given twice.
void check_labels(const std::vector<std::string>& labels, const std::string& place);

/// A line of fastText: words that begin with "__label__" are its labels, the rest is its text.
struct FastTextLine {
  std::vector<std::string> labels;
  std::string text;
};
FastTextLine fasttext_line(std::string_view line);

}  // namespace capstan
