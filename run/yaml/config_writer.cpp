// Writes a tree of configuration as YAML, for the config.yaml of a run, --print-config and log lines. What it writes
// must read back as the same tree: tests/run/yaml/test_config_write.cpp.
#include "run/yaml/config_writer.hpp"

#include <algorithm>

namespace capstan {
namespace {

/// Whether text needs no quotes: it begins like a word or a path and can only be read as text.
bool is_plain(const std::string& text) {
  constexpr const char* letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/.";
  constexpr const char* more = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/.0123456789- ";
  if (text.empty() || std::string(letters).find(text[0]) == std::string::npos || text.back() == ' ') return false;
  if (text.find_first_not_of(more) != std::string::npos) return false;
  double number = 0;  // of any size: one that is out of range would be read as a number, too, and refused
  if (parse_number(text, number) != std::errc::invalid_argument) return false;
  std::string lower = text;
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const char* word : {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "...", ".inf", ".nan"})
    if (lower == word) return false;
  return true;
}

std::string scalar_text(const ConfigNode& node) {
  return node.quoted && !is_plain(node.text) ? in_quotes(node.text) : node.text;
}

std::string key_text(const std::string& key) { return is_plain(key) ? key : in_quotes(key); }

/// Whether a value is written on its key's line.
bool fits_on_line(const ConfigNode& node) {
  if (node.kind == NodeKind::map) return node.children.empty();
  return std::none_of(node.children.begin(), node.children.end(),
                      [](const ConfigNode& child) { return child.kind == NodeKind::map; });
}

void write_block(const ConfigNode& node, std::size_t indent, std::string& out);

/// "- " before the first line of an element, two spaces before its others: the hyphen takes the place of a blank of the
/// indent. A list within a list is on one line.
void write_elements(const ConfigNode& list, std::size_t indent, std::string& out) {
  for (const auto& element : list.children) {
    const std::size_t start = out.size();
    if (element.kind == NodeKind::list || fits_on_line(element))
      out += std::string(indent + 2, ' ') + write_flow(element) + "\n";
    else
      write_block(element, indent + 2, out);
    out[start + indent] = '-';
  }
}

/// The entries of a map, each on lines of its own.
void write_block(const ConfigNode& node, std::size_t indent, std::string& out) {
  for (const auto& child : node.children) {
    out += std::string(indent, ' ') + key_text(child.key) + ":";
    if (fits_on_line(child)) {
      out += " " + write_flow(child) + "\n";
      continue;
    }
    out += "\n";
    if (child.kind == NodeKind::list)
      write_elements(child, indent + 2, out);
    else
      write_block(child, indent + 2, out);
  }
}

}  // namespace

std::string write_yaml(const ConfigNode& node) {
  if (node.kind != NodeKind::map || node.children.empty()) return write_flow(node) + "\n";
  std::string out;
  write_block(node, 0, out);
  return out;
}

std::string write_flow(const ConfigNode& node) {
  if (node.kind == NodeKind::null) return "null";
  if (node.kind == NodeKind::scalar) return scalar_text(node);
  const bool is_map = node.kind == NodeKind::map;
  std::string out = is_map ? "{" : "[";
  for (const auto& child : node.children) {
    if (out.size() > 1) out += ", ";
    out += (is_map ? key_text(child.key) + ": " : "") + write_flow(child);
  }
  return out + (is_map ? "}" : "]");
}

}  // namespace capstan
