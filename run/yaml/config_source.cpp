// Parses the sources of a configuration and merges them: defaults, files, overrides.
// tests/run/yaml/test_config_errors.cpp and test_config_fuzz.cpp.
#include "run/yaml/config_source.hpp"

#include <optional>

#include "core/base/error.hpp"
#include "core/io/regular_file.hpp"
#include "core/strings/strings.hpp"
#include "run/yaml/config_node.hpp"
#include "run/yaml/yaml_parse.hpp"

namespace capstan {
namespace {

constexpr std::size_t max_file_bytes = 1 << 20;

/// The content of a file, or nothing and the reason.
std::optional<std::string> read_file(const std::string& path, std::string& reason) {
  try {
    RegularFile file(path);
    std::string text(max_file_bytes + 1, '\0');
    const std::size_t size = file.read(text.data(), text.size());
    if (size <= max_file_bytes) {
      text.resize(size);
      return text;
    }
    reason = fmt::format("larger than {} bytes: this is not a configuration file", max_file_bytes);
  } catch (const Error& problem) {
    reason = problem.what();
    if (starts_with(reason, path + ": ")) reason.erase(0, path.size() + 2);
    reason = "cannot read this configuration file: " + reason.substr(0, reason.find(';'));
  }
  return std::nullopt;
}

/// Parses a file's text and merges it into `root`. False if it could not be parsed.
bool merge_text(ConfigNode& root, std::string text, const Place& start, ProblemList& problems,
                const std::string& below = "") {
  if (starts_with(text, "\xEF\xBB\xBF")) text.erase(0, 3);  // byte order mark
  auto tree = parse_yaml(text, start, Places::kept, below, problems);
  if (!tree) return false;
  if (tree->kind == NodeKind::map) {
    merge(root, std::move(*tree));
    return true;
  }
  if (tree->kind == NodeKind::null)
    problems.add(start, "", "contains no configuration: expected keys such as \"model:\"");
  else
    problems.add(tree->place, "",
                 fmt::format("expected keys such as \"model:\" at the top, got {}{}", shown(*tree), colon_hint(*tree)));
  return false;
}

std::optional<std::vector<std::string>> split_path(const std::string& path) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(path, ".")) {
    if (part.empty()) return std::nullopt;
    parts.emplace_back(part);
  }
  if (parts.size() > max_config_depth) return std::nullopt;
  return parts;
}

/// Merges `value` into the node at parts[i...] below `node`. Returns what is wrong with the path, or nothing.
std::string set_below(ConfigNode& node, const std::vector<std::string>& parts, std::size_t i, ConfigNode value) {
  if (i == parts.size()) {
    merge(node, std::move(value));
    return "";
  }
  if (node.kind == NodeKind::list) {
    std::int64_t index = -1;
    if (parse_number(parts[i], index) != std::errc{})
      return fmt::format("expected a list index, got {}", in_quotes(parts[i], 60));
    const auto count = static_cast<std::int64_t>(node.children.size());
    if (index < 0 || index >= count)
      return fmt::format("there is no list element {}: the list has {}, counted from 0", parts[i], count);
    return set_below(node.children[static_cast<std::size_t>(index)], parts, i + 1, std::move(value));
  }
  ConfigNode* child = node.find(parts[i]);
  if (child && i + 1 < parts.size() && !child->of_other_type) return set_below(*child, parts, i + 1, std::move(value));

  // {part: {next part: ... value}}; merged from here, so that a new `type` replaces the map it is in.
  for (std::size_t k = parts.size(); k-- > i;) {
    ConfigNode map{NodeKind::map};
    map.place = value.place;
    value.key = parts[k];
    value.key_place = value.place;
    map.children.push_back(std::move(value));
    value = std::move(map);
  }
  merge(node, std::move(value));
  return "";
}

/// Merges one --set. False if it could not be applied, with the reason in `problems`.
bool merge_override(ConfigNode& root, const std::string& override, int order, ProblemList& problems) {
  constexpr std::size_t longest = 200;
  Place place{"--set " + override, order, 0, 0};
  const auto equals = override.find('=');
  const std::string path = override.substr(0, equals);
  const auto parts = split_path(path);
  if (equals == std::string::npos || !parts) {
    place.source = "--set " + in_quotes(override, longest);
    problems.add(place, "", "expected path.to.key=value");
    return false;
  }
  auto value = parse_yaml(override.substr(equals + 1), place, Places::dropped, path, problems);
  if (!value) return false;
  if (!value->place.given()) value->place = place;  // nothing after the equals sign
  const auto wrong = set_below(root, *parts, 0, std::move(*value));
  if (!wrong.empty()) problems.add(place, "", wrong);
  return wrong.empty();
}

}  // namespace

std::string set_value(ConfigNode& root, const std::string& path, ConfigNode value) {
  const auto parts = split_path(path);
  if (!parts) return "expected path.to.key";
  return set_below(root, *parts, 0, std::move(value));
}

ConfigNode load_tree(ConfigNode base, const std::vector<std::string>& files, const std::vector<std::string>& overrides,
                     ProblemList& problems) {
  bool complete = true;
  int order = 0;
  for (const auto& file : files) {
    const Place start{file, order++, 0, 0};
    std::string reason;
    if (auto text = read_file(file, reason)) {
      complete &= merge_text(base, std::move(*text), start, problems);
    } else {
      problems.add(start, "", reason);
      complete = false;
    }
  }
  // What is missing would be reported as many unrelated problems, so each of the two stages ends at its own.
  if (!complete) problems.throw_if_any();
  for (const auto& override : overrides) complete &= merge_override(base, override, order++, problems);
  if (!complete) problems.throw_if_any();
  base.place = Place{files.empty() ? "configuration" : join(files), 0, 0, 0};
  return base;
}

ConfigNode load_tree_from_text(ConfigNode base, const std::string& text, const std::string& name, ProblemList& problems,
                               const std::string& below) {
  const Place start{name, 0, 0, 0};
  if (!merge_text(base, text, start, problems, below)) problems.throw_if_any();
  base.place = start;
  return base;
}

}  // namespace capstan
