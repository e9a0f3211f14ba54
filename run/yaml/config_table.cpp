// Rows with the same text (text_of_rows()) document the same struct or key, however deep they are: this is how
// repetitions are found, without knowing any struct. tests/run/yaml/test_config_write.cpp.
#include "run/yaml/config_table.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "core/strings/nearest.hpp"
#include "core/strings/pattern.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

/// Escapes what Markdown would interpret: a vertical bar ends a cell, also in `code`; <...> is HTML, * is emphasis.
std::string cell(const std::string& text) {
  std::string out;
  bool in_code = false;
  for (const char c : text) {
    in_code ^= c == '`';
    if (std::string_view(in_code ? "|" : "|<*").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// "number 0…1, or null".
std::string values_of(const TableRow& row) {
  const size_t end = std::min(row.type.find(", or null"), row.type.size());
  return row.type.substr(0, end) + (row.limits.empty() ? "" : " " + row.limits) + row.type.substr(end);
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

/// The index after the rows that are inside of rows[at].
size_t end_of(const std::vector<TableRow>& rows, size_t at) {
  const std::string& path = rows[at].path;
  size_t end = at + 1;
  while (end < rows.size() && rows[end].path.compare(0, path.size(), path) == 0 &&
         (rows[end].path[path.size()] == '.' || rows[end].path[path.size()] == '('))
    ++end;
  return end;
}

/// All that rows [begin, end) have but their defaults, as one text; of their paths the first `prefix` bytes are left
/// out. Rows with the same text document the same keys.
std::string text_of_rows(const std::vector<TableRow>& rows, size_t begin, size_t end, size_t prefix) {
  std::string text;
  for (size_t i = begin; i < end; ++i)
    for (const std::string& part : {rows[i].path.substr(prefix), rows[i].type, rows[i].limits, rows[i].help})
      text += part + '\0';
  return text;
}

/// Joins rows in which only the innermost type and the default differ into one, which lists the types.
std::vector<TableRow> joined_types(const std::vector<TableRow>& rows) {
  std::map<std::string, size_t> first;  // first row with a text
  std::vector<TableRow> joined;
  std::vector<std::string> defaults;  // of each of these, that of the first type
  for (const TableRow& row : rows) {
    const TypedPath path = typed(row.path);
    const std::string text = path.before + '\0' + path.after + '\0' + text_of_rows({row}, 0, 1, row.path.size());
    const auto [found, is_new] = first.emplace(text, joined.size());
    if (is_new || path.type.empty()) {
      joined.push_back(row);
      defaults.push_back(row.default_value);
    } else {
      TableRow& known = joined[found->second];
      const TypedPath there = typed(known.path);
      known.path = there.before + "(" + there.type + ", " + path.type + ")" + there.after;
      if (row.default_value != defaults[found->second])
        known.default_value += "; " + path.type + ": " + row.default_value;
    }
  }
  return joined;
}

/// The structs of earlier rows, found by the text of their rows.
class KnownStructs {
 public:
  explicit KnownStructs(const std::vector<TableRow>& rows) : rows_(rows) {}

  /// Remembers rows [begin, end), whose paths begin with `path`.
  void add(const std::string& path, size_t begin, size_t end) {
    known_.emplace(text_of_rows(rows_, begin, end, path.size()), Place{path, begin, end});
  }
  /// The text in place of such rows, if they are known: a reference to the known ones and what differs. It is empty for
  /// rows that joined_types() joins with the known ones.
  std::optional<std::string> reference(const std::string& path, size_t begin, size_t end) const {
    const auto found = known_.find(text_of_rows(rows_, begin, end, path.size()));
    if (found == known_.end()) return std::nullopt;
    const Place& known = found->second;
    std::vector<std::string> others;
    for (size_t i = known.begin; i < known.end; ++i) {
      const size_t same = begin + i - known.begin;
      if (rows_[same].default_value != rows_[i].default_value)
        others.push_back(settable_key(rows_[i].path).substr(settable_key(known.path).size() + 1) + " " +
                         rows_[same].default_value);
    }
    const TypedPath here = typed(path), there = typed(known.path);
    if (here.before == there.before && here.after == there.after && others.empty()) return "";
    return "; its keys are those of `" + known.path + "`" +
           (others.empty() ? "" : ", with other defaults: " + join(others));
  }

 private:
  struct Place {
    std::string path;
    size_t begin, end;
  };
  const std::vector<TableRow>& rows_;
  std::map<std::string, Place> known_;
};

}  // namespace

std::vector<TableRow> shortened(const std::vector<TableRow>& rows) {
  std::vector<TableRow> kept;
  KnownStructs known(rows);
  std::string type;  // the alternative that the rows are in
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t end = end_of(rows, i), close = rows[i].path.rfind(')');
    if (const std::string inside = rows[i].path.substr(0, close + 1); close != std::string::npos && inside != type) {
      type = inside;
      size_t last = i;
      while (last < rows.size() && rows[last].path.compare(0, type.size(), type) == 0) ++last;
      known.add(type, i, last);
    }
    kept.push_back(rows[i]);
    if (end - i <= 2) continue;  // a reference to one key is no shorter than the key
    const auto reference = known.reference(rows[i].path, i + 1, end);
    known.add(rows[i].path, i + 1, end);
    if (!reference) continue;
    kept.back().help += *reference;
    i = end - 1;
  }
  return joined_types(kept);
}

std::string range_text(const Constraint& constraint, bool of_length) {
  constexpr double guard = 1e9;
  const auto &minimum = constraint.minimum, &maximum = constraint.maximum;
  std::string range;
  if (minimum && minimum == maximum)
    range = fmt::format("exactly {}", *minimum);
  else if (minimum && maximum && *maximum < guard)
    range = fmt::format("{}{}…{}{}", constraint.above_minimum ? ">" : "", *minimum, constraint.below_maximum ? "<" : "",
                        *maximum);
  else if (minimum)
    range = fmt::format("{}{}", constraint.above_minimum ? ">" : "≥", *minimum);
  if (of_length && !range.empty()) range = "length " + range;
  return constraint.not_empty ? range + "not empty" : range;
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
  std::map<std::tuple<std::string, std::string>, size_t> known;  // by key and text of its row, its index in `matches`
  std::vector<std::pair<TableRow, std::vector<std::string>>> matches;
  std::vector<std::string> names, last_parts;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string name = settable_key(rows[i].path), tail = "." + name;
    if (!starts_with(wanted, name + ".")) names.push_back(name);  // not the section of an unknown key
    last_parts.push_back(name.substr(name.rfind('.') + 1));
    if (tail.size() <= wanted.size() ||
        tail.compare(tail.size() - wanted.size() - 1, std::string::npos, "." + wanted) != 0)
      continue;
    const auto [at, is_new] = known.emplace(
        std::tuple(name, text_of_rows(rows, i, i + 1, rows[i].path.size()) + rows[i].default_value), matches.size());
    if (is_new) matches.emplace_back(rows[i], std::vector<std::string>());
    std::vector<std::string>& types = matches[at->second].second;
    const std::string type = typed(rows[i].path).type;
    if (!type.empty() && std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  if (matches.empty()) {
    std::string near = nearest(wanted, names);
    if (near.empty()) near = nearest(wanted.substr(wanted.rfind('.') + 1), last_parts);
    throw ConfigError(
        fmt::format("config explain: no key is called {}{}", key,
                    near.empty() ? "; `capstan config table` lists all keys" : ", did you mean " + near + "?"));
  }
  std::string text;
  for (const auto& [row, types] : matches) {
    const std::string name = settable_key(row.path);
    const bool required = row.default_value == "must be given";
    text += fmt::format("{}{}{}\n  {}\n  {}{}\n", text.empty() ? "" : "\n", name,
                        types.empty() ? "" : " (of " + join(types) + ")", row.help, values_of(row),
                        row.default_value.empty() ? ""
                        : required                ? "; must be given"
                                                  : "; default " + row.default_value);
    if (row.type.find("map") == std::string::npos)
      text += fmt::format("  for example: --set {}={}\n", name, required ? "VALUE" : row.default_value);
  }
  return text;
}

std::string markdown_table(const std::vector<TableRow>& rows) {
  std::string out = "| Key | Values | Default | Meaning |\n|---|---|---|---|\n";
  for (const TableRow& row : rows) {
    const std::string default_value =
        row.default_value == "must be given" ? row.default_value : code(row.default_value);
    for (const std::string& text : {code(row.path), values_of(row), default_value, row.help})
      out += "| " + cell(text) + " ";
    out += "|\n";
  }
  return out;
}

}  // namespace capstan
