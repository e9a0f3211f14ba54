// Lines such as "#good A fine film": the label of a line, if it has one, and its text.
#include <algorithm>

#include "data/formats/line_rows.hpp"
#include "data/formats/row_labels.hpp"

namespace capstan {

static LabelledText read_tagged_line(std::string_view line, const std::string& place, const ColumnChoice& choice) {
  std::string label;
  if (line.front() == '#') {
    const size_t end = std::min(line.find(' '), line.size());
    label = line.substr(1, end - 1);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  LabelledText row;
  row.text = line;
  if (choice.labels) set_label(row, label, choice, place);  // an empty label makes a bad row
  return row;
}

TableFormat tagged_format() {
  return {"tagged", [](const TableInput& input) {
            return read_lines(input, [&](const Line& line, const std::string& place) {
              return read_tagged_line(line.text, place, input.choice);
            });
          }};
}

}  // namespace capstan
