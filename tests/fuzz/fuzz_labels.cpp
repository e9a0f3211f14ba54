// data/labelled/class_names: a file of class names, an empty line, and labels that are looked up.
#include "data/labelled/class_names.hpp"

#include "data/files/text_file.hpp"
#include "tests/fuzz/target.hpp"

namespace capstan::fuzz {
namespace {

void read_labels(std::string_view input) {
  const size_t gap = std::min(input.find("\n\n"), input.size());
  std::vector<std::string> names, labels;
  Lines above(input.substr(0, gap)), below(input.substr(gap));
  for (Line line; above.next(line);) names.emplace_back(line.text);
  for (Line line; below.next(line);) labels.emplace_back(line.text);
  if (!labels.empty()) ClassNames::gather(labels, "input");
  const ClassNames classes = ClassNames::from_list(names, "input");
  for (const std::string& label : labels) {
    const int32_t index = classes.index_of(label, "input:1");
    require(index >= 0 && static_cast<size_t>(index) < classes.names().size(), "a label is one of the classes");
  }
}

const Registered labels_target("labels", read_labels);

}  // namespace
}  // namespace capstan::fuzz
