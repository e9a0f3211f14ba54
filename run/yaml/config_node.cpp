// Merges and compares trees of configuration, reads and writes numbers without the locale, and collects what is wrong
// with trees. tests/run/yaml/test_config_read.cpp, test_config_write.cpp and test_config_errors.cpp.
#include "run/yaml/config_node.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/strings/utf8.hpp"

namespace capstan {

ConfigNode* ConfigNode::find(std::string_view name) {
  if (kind != NodeKind::map) return nullptr;
  for (auto& child : children)
    if (child.key == name) return &child;
  return nullptr;
}

const ConfigNode* ConfigNode::find(std::string_view name) const { return const_cast<ConfigNode*>(this)->find(name); }

ConfigNode scalar_node(std::string text, bool quoted) { return {NodeKind::scalar, std::move(text), quoted}; }

namespace {

/// std::from_chars for the whole of `text`, a leading plus allowed.
template <class T>
std::errc parse_all(std::string_view text, T& value) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return end == text.data() + text.size() ? error : std::errc::invalid_argument;
}

/// {type: NAME} for NAME.
ConfigNode expanded(ConfigNode name) {
  ConfigNode map{NodeKind::map};
  map.place = name.place;
  map.key = std::exchange(name.key, "type");
  map.key_place = name.key_place;
  map.children.push_back(std::move(name));
  return map;
}

bool types_differ(const ConfigNode& a, const ConfigNode& b) {
  const auto *type_a = a.find("type"), *type_b = b.find("type");
  return type_a && type_b && (type_a->kind != type_b->kind || type_a->text != type_b->text);
}

constexpr const char* absent = "absent";

bool compared_by_key(const ConfigNode& a, const ConfigNode& b) {
  if (a.kind != NodeKind::map || b.kind != NodeKind::map) return false;
  return !a.is_variant || !b.is_variant || a.find("type")->text == b.find("type")->text;
}

void add_differences(const ConfigNode& a, const ConfigNode& b, const std::string& path,
                     std::vector<ConfigDifference>& out) {
  if (compared_by_key(a, b)) {
    for (const auto& child : a.children) {
      const ConfigNode* other = b.find(child.key);
      if (other)
        add_differences(child, *other, join_path(path, child.key), out);
      else
        out.push_back({join_path(path, child.key), write_flow(child), absent});
    }
    for (const auto& child : b.children)
      if (!a.find(child.key)) out.push_back({join_path(path, child.key), absent, write_flow(child)});
  } else if (a.kind == NodeKind::list && b.kind == NodeKind::list) {
    for (std::size_t i = 0; i < std::max(a.children.size(), b.children.size()); ++i) {
      const auto element_path = join_path(path, std::to_string(i));
      if (i >= a.children.size())
        out.push_back({element_path, absent, write_flow(b.children[i])});
      else if (i >= b.children.size())
        out.push_back({element_path, write_flow(a.children[i]), absent});
      else
        add_differences(a.children[i], b.children[i], element_path, out);
    }
  } else if (write_flow(a) != write_flow(b)) {
    out.push_back({path, write_flow(a), write_flow(b)});
  }
}

}  // namespace

std::errc parse_number(std::string_view text, double& value) {
  std::string_view word = text;
  const bool negative = !word.empty() && word[0] == '-';
  if (negative) word.remove_prefix(1);
  if (word == "inf" || word == ".inf") {
    value = std::copysign(std::numeric_limits<double>::infinity(), negative ? -1.0 : 1.0);
    return {};
  }
  if (text == "nan" || text == ".nan") {
    value = std::numeric_limits<double>::quiet_NaN();
    return {};
  }
  if (word.find_first_not_of("0123456789+-.eE") != std::string_view::npos) return std::errc::invalid_argument;
  return parse_all(text, value);
}

std::errc parse_number(std::string_view text, std::int64_t& value) { return parse_all(text, value); }

std::string format_number(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  return fmt::format("{}", value);
}

void merge(ConfigNode& base, ConfigNode over) {
  if (over.kind == NodeKind::map && base.kind == NodeKind::scalar) base = expanded(std::move(base));
  if (over.kind != NodeKind::map || base.kind != NodeKind::map || base.of_other_type) {
    over.key = base.key;
    if (!over.key_place.given()) over.key_place = base.key_place;
    base = std::move(over);
    return;
  }
  // Messages about a map name the last file that has it. An override only sets keys in a map, so that the map keeps its
  // place unless no file has it or the override gives it another type.
  const bool is_override = over.place.line == 0, new_type = types_differ(base, over);
  if (over.place.given() && (new_type || !is_override || !base.place.given())) base.place = over.place;
  if (over.key_place.given()) base.key_place = over.key_place;
  base.of_other_type = false;
  if (new_type)
    for (auto& child : base.children) child.of_other_type = true;
  for (auto& child : over.children) {
    if (ConfigNode* same = base.find(child.key))
      merge(*same, std::move(child));
    else
      base.children.push_back(std::move(child));
  }
}

std::string shown(const ConfigNode& node) {
  constexpr std::size_t longest = 60;
  switch (node.kind) {
    case NodeKind::null:
      return "nothing";
    case NodeKind::list:
      return node.children.empty() ? "an empty list" : "a list";
    case NodeKind::map:
      return "a map";
    case NodeKind::scalar:
      break;
  }
  double number = 0;
  const bool bare =
      !node.quoted && node.text.size() <= longest && parse_number(node.text, number) != std::errc::invalid_argument;
  return bare ? node.text : in_quotes(node.text, longest);
}

std::string colon_hint(const ConfigNode& node) {
  const bool run_together = node.kind == NodeKind::scalar && node.text.find(':') != std::string::npos;
  return run_together ? ": a key's colon must be followed by a space" : "";
}

std::string in_quotes(std::string_view text, std::size_t longest) {
  const bool cut = text.size() > longest;
  if (cut) text = text.substr(0, character_boundary(text, longest));
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + (cut ? "...\"" : "\"");
}

std::string join_path(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

void ProblemList::add(const Place& place, const std::string& path, const std::string& message) {
  problems_.push_back({place, path, message});
}

std::string ProblemList::Problem::line() const {
  std::string out = place.source;
  if (place.line > 0) out += fmt::format(":{}:{}", place.line, place.column);
  // An override already starts with the path it sets.
  const bool named = path.empty() || place.source.rfind(fmt::format("--set {}=", path), 0) == 0;
  return fmt::format("{}: {}{}{}", out, named ? "" : path, named ? "" : ": ", message);
}

void ProblemList::throw_if_any() const {
  if (problems_.empty()) return;
  constexpr std::size_t most = 100;
  auto sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.place.order, a.place.line, a.place.column) <
           std::tie(b.place.order, b.place.line, b.place.column);
  });
  std::string message;
  for (std::size_t i = 0; i < std::min(most, sorted.size()); ++i) message += (i > 0 ? "\n" : "") + sorted[i].line();
  if (sorted.size() > most) message += fmt::format("\n... and {} more", sorted.size() - most);
  throw ConfigError(message);
}

std::vector<ConfigDifference> diff_trees(const ConfigNode& a, const ConfigNode& b) {
  std::vector<ConfigDifference> out;
  add_differences(a, b, "", out);
  return out;
}

}  // namespace capstan
