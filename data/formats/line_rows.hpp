// Tables that have a row in every line.
#pragma once

#include <vector>

#include "core/strings/utf8.hpp"
#include "data/files/text_file.hpp"
#include "data/formats/table_format.hpp"

namespace capstan {

/// read(Line, place) of every line that is not blank; place: "file:line". An Error that it throws makes a bad row.
template <class Read>
std::vector<LabelledText> read_lines(const TableInput& input, const Read& read) {
  std::vector<LabelledText> rows;
  Lines lines(input.content);
  for (Line line; lines.next(line);)
    if (line.text.find_first_not_of(" \t") != std::string_view::npos)
      input.bad.guard([&] {
        if (input.utf8) check_utf8(line.text, input.file, line.number);
        rows.push_back(read(line, fmt::format("{}:{}", input.file, line.number)));
        rows.back().line = line.number;
      });
  return rows;
}

}  // namespace capstan
