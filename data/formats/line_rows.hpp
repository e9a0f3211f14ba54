// Tables that have a row in every line: JSONL, fastText, and formats that a program adds (docs/adding.md).
#pragma once

#include <utility>

#include "core/strings/utf8.hpp"
#include "data/files/text_file.hpp"
#include "data/formats/table_format.hpp"

namespace capstan {

/// TableFormat::read: gives input.take the row that read(Line, place) makes of every line that is not blank; place:
/// "file:line". An Error that it throws makes a bad row.
template <class Read>
void read_lines(const TableInput& input, const Read& read) {
  Lines lines(input.content);
  for (Line line; lines.next(line);)
    if (line.text.find_first_not_of(" \t") != std::string_view::npos)
      input.bad.guard([&] {
        if (input.utf8) check_utf8(line.text, input.file, line.number);
        LabelledText row = read(line, fmt::format("{}:{}", input.file, line.number));
        row.line = line.number;
        input.take(std::move(row), static_cast<size_t>(line.text.end() - input.content.begin()));
      });
}

}  // namespace capstan
