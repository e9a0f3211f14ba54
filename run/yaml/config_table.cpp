#include "run/yaml/config_table.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <tuple>

#include "core/strings/nearest.hpp"

namespace capstan {
namespace {

/// Escapes what Markdown would interpret: a vertical bar ends a cell, <...> is HTML, * is emphasis.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("|<*").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

/// A path, cut at the innermost type: "model(x).layers.N.mixer", "gau", ".key_dim". Without types all of it is
/// `before`.
struct TypedPath {
  std::string before, type, after;
};

TypedPath typed(const std::string& path) {
  const size_t open = path.rfind('('), close = path.rfind(')');
  if (open == std::string::npos) return {path, "", ""};
  return {path.substr(0, open), path.substr(open + 1, close - open - 1), path.substr(close + 1)};
}

/// Past the last of the rows that are inside of rows[at].
size_t end_of(const std::vector<TableRow>& rows, size_t at) {
  const std::string& path = rows[at].path;
  size_t end = at + 1;
  while (end < rows.size() && rows[end].path.compare(0, path.size(), path) == 0 &&
         (rows[end].path[path.size()] == '.' || rows[end].path[path.size()] == '('))
    ++end;
  return end;
}

/// What rows [begin, end) say, their paths without the first `prefix` bytes.
std::string said(const std::vector<TableRow>& rows, size_t begin, size_t end, size_t prefix) {
  std::string text;
  for (size_t i = begin; i < end; ++i)
    for (const std::string& part :
         {rows[i].path.substr(prefix), rows[i].type, rows[i].default_value, rows[i].limits, rows[i].help})
      text += part + '\0';
  return text;
}

/// Rows in which only the innermost type differs are one, which lists the types.
std::vector<TableRow> joined_types(const std::vector<TableRow>& rows) {
  std::map<std::string, size_t> first;  // where what a row says stands
  std::vector<TableRow> joined;
  for (size_t i = 0; i < rows.size(); ++i) {
    const TypedPath path = typed(rows[i].path);
    const std::string text = path.before + '\0' + path.after + '\0' + said(rows, i, i + 1, rows[i].path.size());
    const auto [found, is_new] = first.emplace(text, joined.size());
    if (is_new || path.type.empty()) {
      joined.push_back(rows[i]);
    } else {
      const TypedPath known = typed(joined[found->second].path);
      joined[found->second].path = known.before + "(" + known.type + ", " + path.type + ")" + known.after;
    }
  }
  return joined;
}

}  // namespace

std::vector<TableRow> shortened(const std::vector<TableRow>& rows) {
  std::map<std::string, std::string> first;  // the path of the struct with these keys
  std::vector<TableRow> kept;
  for (size_t i = 0; i < rows.size(); ++i) {
    kept.push_back(rows[i]);
    const size_t end = end_of(rows, i);
    if (end - i <= 2) continue;  // a reference to one key is no shorter than the key
    const auto [same, is_new] = first.emplace(said(rows, i + 1, end, rows[i].path.size()), rows[i].path);
    if (is_new) continue;
    const TypedPath here = typed(rows[i].path), there = typed(same->second);
    // The rows of the two are joined, or this one refers to the other.
    if (here.before != there.before || here.after != there.after)
      kept.back().help += "; its keys are those of `" + same->second + "`";
    i = end - 1;
  }
  return joined_types(kept);
}

std::string settable_key(const std::string& path) {
  std::string key;
  bool inside = false;  // inside brackets
  for (const char c : path) {
    if (c == '(') inside = true;
    if (!inside) key += c;
    if (c == ')') inside = false;
  }
  for (size_t at; (at = key.find(".N.")) != std::string::npos;) key[at + 1] = '0';
  return key;
}

std::string explain_key(const std::vector<TableRow>& rows, const std::string& key) {
  std::string wanted = settable_key(key);
  for (size_t i = 1; i < wanted.size(); ++i)  // any entry of a list has the keys of the first one
    if (wanted[i - 1] == '.' && std::isdigit(static_cast<unsigned char>(wanted[i])) != 0) wanted[i] = '0';
  std::map<std::tuple<std::string, std::string>, size_t> known;  // the key and what is said of it, in `found`
  std::vector<std::pair<TableRow, std::vector<std::string>>> found;
  std::vector<std::string> names;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string name = settable_key(rows[i].path), tail = "." + name;
    names.push_back(name);
    names.push_back(name.substr(name.rfind('.') + 1));
    if (tail.size() <= wanted.size() ||
        tail.compare(tail.size() - wanted.size() - 1, std::string::npos, "." + wanted) != 0)
      continue;
    const auto [at, is_new] = known.emplace(std::tuple(name, said(rows, i, i + 1, rows[i].path.size())), found.size());
    if (is_new) found.emplace_back(rows[i], std::vector<std::string>());
    std::vector<std::string>& types = found[at->second].second;
    const std::string type = typed(rows[i].path).type;
    if (!type.empty() && std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  if (found.empty()) {
    const std::string near = nearest(wanted, names);
    throw ConfigError(
        fmt::format("config explain: no key is called {}{}", key,
                    near.empty() ? "; `capstan config table` lists all keys" : ", did you mean " + near + "?"));
  }
  std::string text;
  for (const auto& [row, types] : found) {
    const std::string name = settable_key(row.path);
    const bool required = row.default_value == "must be given";
    text += fmt::format("{}{}{}\n  {}\n  {}{}{}\n", text.empty() ? "" : "\n", name,
                        types.empty() ? "" : " (of " + join(types) + ")", row.help, row.type,
                        row.limits.empty() ? "" : ", " + row.limits,
                        row.default_value.empty() ? ""
                        : required                ? "; must be given"
                                                  : "; default " + row.default_value);
    if (row.type.find("map") == std::string::npos)
      text += fmt::format("  for example: --set {}={}\n", name, required ? "VALUE" : row.default_value);
  }
  return text;
}

std::string markdown_table(const std::vector<TableRow>& rows) {
  std::string out = "| Key | Type | Default | Limits | Meaning |\n|---|---|---|---|---|\n";
  for (const auto& row : rows) {
    const std::string default_value =
        row.default_value == "must be given" ? row.default_value : code(row.default_value);
    for (const auto& text : {code(row.path), row.type, default_value, row.limits, row.help})
      out += "| " + cell(text) + " ";
    out += "|\n";
  }
  return out;
}

}  // namespace capstan
