// Parsing JSON: nlohmann's parser reports events (SAX), and Builder makes the value of them. So nesting that is too
// deep and repeated keys are refused while the text is read, and no text costs more stack than the limit allows.
// tests/core/io/test_json.cpp.
#include "core/io/json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/strings/printable.hpp"
#include "core/strings/utf8.hpp"

namespace capstan {
namespace {

using nlohmann::json;

constexpr size_t longest_excerpt = 60;

/// The text, or its first `most` bytes, cut between two characters, and "...".
std::string shortened(std::string text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most) + "...";
}

/// Builds a value from the parser's events. The parser itself keeps one bit per open list or object.
class Builder final : public nlohmann::json_sax<json> {
 public:
  explicit Builder(const JsonRule& rule) : rule_(rule) {}

  json root;
  bool too_deep = false;
  std::optional<std::string> repeated_key;
  size_t position = 0;  // bytes read up to an error
  std::string problem;

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t& value) override { return put(std::move(value)); }
  bool start_object(size_t) override { return open(json::object()); }
  bool start_array(size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    const auto [place, is_new] = open_.back()->get_ref<json::object_t&>().emplace(std::move(value), nullptr);
    next_ = &place->second;
    if (!is_new) repeated_key = place->first;
    return is_new;
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception& error) override {
    position = at;
    problem = error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..."
    const size_t end = problem.find("] ");
    if (end != std::string::npos) problem.erase(0, end + 2);
    const size_t syntax = problem.find("syntax error");
    if (syntax != std::string::npos) problem.erase(0, syntax);
    return false;
  }

 private:
  json* place() {
    if (open_.empty()) return &root;
    if (open_.back()->is_array()) return &open_.back()->get_ref<json::array_t&>().emplace_back();
    return next_;
  }
  template <class T>
  bool put(T&& value) {
    *place() = std::forward<T>(value);
    return true;
  }
  bool open(json value) {
    if (open_.size() == rule_.depth) {
      too_deep = true;
      return false;
    }
    json* const at = place();
    *at = std::move(value);
    open_.push_back(at);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const JsonRule& rule_;
  std::vector<json*> open_;  // a list grows only while nothing in it is open, so these stay valid
  json* next_ = nullptr;     // the value of an object's last key
};

/// The place of the bracket that opens one level too many, in a text that is JSON up to there.
size_t too_deep_at(std::string_view text, size_t depth) {
  size_t open = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++open > depth) return at;
    } else if (c == ']' || c == '}') {
      --open;
    }
  }
  return text.size();
}

/// "file:line:column" of a byte; columns count bytes.
std::string place_of(std::string_view text, size_t at, const JsonRule& rule) {
  const std::string_view before = text.substr(0, at);
  const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 == 0
  const int64_t first = line_begin == 0 ? rule.column : 1;
  return fmt::format("{}:{}:{}", rule.file, rule.line + std::count(before.begin(), before.end(), '\n'),
                     first + static_cast<int64_t>(at - line_begin));
}

/// The parser takes a NUL for the end of the text.
bool is_parsed(std::string_view text, Builder& builder) {
  return text.find('\0') == std::string_view::npos && json::sax_parse(text.begin(), text.end(), &builder);
}

/// The first key or string that is not UTF-8; empty if there is none.
std::string text_not_utf8(const json& value) {
  if (value.is_string() && !is_utf8(value.get_ref<const std::string&>())) return value.get<std::string>();
  if (!value.is_structured()) return "";
  for (const auto& item : value.items()) {
    if (value.is_object() && !is_utf8(item.key())) return item.key();
    if (std::string found = text_not_utf8(item.value()); !found.empty()) return found;
  }
  return "";
}

}  // namespace

json parse_json(std::string_view text, const JsonRule& rule) {
  Builder builder(rule);
  if (is_parsed(text, builder)) return std::move(builder.root);
  if (builder.too_deep)
    throw JsonError(fmt::format("{}: not JSON that can be read: nested deeper than {} levels",
                                place_of(text, too_deep_at(text, rule.depth), rule), rule.depth));
  if (builder.repeated_key)
    throw JsonError(fmt::format("{}: the key \"{}\" occurs twice in one object", place_of(text, 0, rule),
                                shortened(*builder.repeated_key, longest_excerpt)));
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    throw JsonError(fmt::format("{}: not JSON: a NUL byte", place_of(text, nul, rule)));
  const size_t at = std::min(builder.position > 0 ? builder.position - 1 : 0, text.size());
  throw JsonError(fmt::format("{}: not JSON: {}", place_of(text, at, rule), shortened(builder.problem, 200)));
}

json try_parse_json(std::string_view text) {
  const JsonRule rule;
  Builder builder(rule);
  return is_parsed(text, builder) ? std::move(builder.root) : json(json::value_t::discarded);
}

std::string json_text(const json& value, int indent) {
  try {
    return value.dump(indent);
  } catch (const json::type_error&) {  // of a file that is saved, a user could not tell which text it means
    throw Error(
        fmt::format("a file of JSON cannot hold \"{}\", which is not valid UTF-8; rename it, or convert the file "
                    "that it comes from to UTF-8",
                    printable_line(text_not_utf8(value))));
  }
}

std::string json_line(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string json_excerpt(const json& value) {
  if (value.is_object()) return value.empty() ? "an empty object" : "an object";
  if (value.is_array()) return value.empty() ? "an empty list" : fmt::format("a list of {}", value.size());
  if (value.is_string()) {  // the text may be long: it is cut before it is escaped
    const std::string text = shortened(value.get_ref<const std::string&>(), longest_excerpt);
    return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return value.dump();
}

std::optional<int64_t> whole_number(const json& value, int64_t low, int64_t high) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  if (!value.is_number_integer()) return std::nullopt;
  const auto number = value.get<int64_t>();
  return number >= low && number <= high ? std::optional(number) : std::nullopt;
}

int64_t whole_number_at(const json& object, const char* key, int64_t low, int64_t high) {
  if (!object.is_object() || !object.contains(key)) throw JsonError(fmt::format("the key {} is missing", key));
  if (const auto number = whole_number(object[key], low, high)) return *number;
  throw JsonError(
      fmt::format("{} must be a whole number from {} to {}, found {}", key, low, high, json_excerpt(object[key])));
}

}  // namespace capstan
