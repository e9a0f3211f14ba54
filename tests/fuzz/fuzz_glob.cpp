// Patterns of files: a line with the pattern, then paths, one per line.
#include "data/files/file_list.hpp"
#include "data/files/text_file.hpp"
#include "tests/fuzz/target.hpp"

namespace capstan::fuzz {
namespace {

void match_paths(std::string_view input) {
  Lines lines(input);
  Line pattern, path;
  if (!lines.next(pattern)) return;
  const bool plain = pattern.text.find_first_of("*?[/") == std::string_view::npos &&
                     pattern.text.find('\0') == std::string_view::npos && !pattern.text.empty();
  if (plain) require(matches_pattern(pattern.text, pattern.text), "a name without wildcards matches itself");
  for (int count = 0; count < 8 && lines.next(path); ++count) {
    matches_pattern(path.text, pattern.text);
    require(matches_pattern(path.text, "**"), "** matches every path");
  }
}

const Registered glob_target("glob", match_paths);

}  // namespace
}  // namespace capstan::fuzz
