// Overrides of --set, one per line.
#include "data/files/text_file.hpp"
#include "tests/fuzz/yaml_config.hpp"

namespace capstan::fuzz {
namespace {

void read_overrides(std::string_view input) {
  std::vector<std::string> overrides;
  Lines lines(input);
  for (Line line; overrides.size() < 8 && lines.next(line);) overrides.emplace_back(line.text);
  ProblemList problems;
  read_run(load_tree(to_node(AnyRun{}), {}, overrides, problems), problems);
}

const Registered set_target("set", read_overrides);

}  // namespace
}  // namespace capstan::fuzz
