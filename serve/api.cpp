// Reads fields of a JSON request with their limits, and writes answers and errors as OpenAI's API has them. What the
// client sent wrong must be 4xx with the field's name, any other fault 5xx: tests/serve/test_endpoints.cpp.
#include "serve/api.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"
#include "core/strings/nearest.hpp"
#include "core/strings/strings.hpp"
#include "run/inputs/input_text.hpp"

namespace capstan {

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json error_json(const std::exception& error) {
  const auto* const refused = dynamic_cast<const ApiError*>(&error);
  const bool has_param = refused != nullptr && !refused->param().empty();
  const int status = status_of(error);
  return {{"error",
           {{"message", error.what()},
            {"type", status >= 500 ? "server_error" : "invalid_request_error"},
            {"param", has_param ? ordered_json(refused->param()) : ordered_json(nullptr)},
            {"code", status}}}};
}

HttpAnswer json_answer(const ordered_json& value) { return {200, json_line(value)}; }

HttpAnswer error_answer(const std::exception& error) {
  HttpAnswer answer{status_of(error), json_line(error_json(error))};
  if (answer.status == 429 || answer.status == 503) answer.headers.emplace_back("Retry-After", "1");
  if (answer.status == 401) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

int status_of(const std::exception& error) {
  if (const auto* const refused = dynamic_cast<const ApiError*>(&error)) return refused->status();
  const auto* const text = dynamic_cast<const TextError*>(&error);
  if (text != nullptr) return text->not_finite() ? 500 : 400;
  return dynamic_cast<const ConfigError*>(&error) != nullptr ? 400 : 500;
}

RequestFields::RequestFields(const json& object, std::string_view known, std::string path)
    : object_(object), path_(std::move(path)) {
  if (!object.is_object())
    throw ApiError(400, path_.empty() ? "the body must be a JSON object" : path_ + ": must be an object", path_);
  if (!path_.empty()) path_ += '.';
  const std::vector<std::string_view> words = split(known, " ");
  const std::vector<std::string> names(words.begin(), words.end());
  for (const auto& [name, value] : object.items())
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const std::string shown = is_plain_name(name) ? name : json_excerpt(name), meant = nearest(name, names);
      refuse(shown.c_str(), meant.empty() ? "unknown field" : "unknown field, did you mean " + meant + "?");
    }
}

void RequestFields::neutral(const char* name) const {
  const json* const value = find(name);
  if (value == nullptr || (value->is_number() && value->get<double>() == 0)) return;
  if ((value->is_object() || value->is_string()) && value->empty()) return;
  refuse(name, "this server does not have it: leave it out");
}

void RequestFields::refuse(const char* name, const std::string& why) const {
  throw ApiError(400, path_ + name + ": " + why, path_ + name);
}

const json* RequestFields::find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

template <class T, class Read>
T RequestFields::read(const char* name, const T& otherwise, const std::string& expected, const Read& read_value) const {
  const json* const value = find(name);
  if (value == nullptr) return otherwise;
  if (const std::optional<T> given = read_value(*value)) return *given;
  refuse(name, fmt::format("expected {}, got {}", expected, json_excerpt(*value)));
}

int64_t RequestFields::whole(const char* name, int64_t otherwise, int64_t low, int64_t high) const {
  return read(name, otherwise, fmt::format("a whole number from {} to {}", low, high),
              [&](const json& value) { return whole_number(value, low, high); });
}

double RequestFields::number(const char* name, double otherwise, double low, double high) const {
  return read(name, otherwise, fmt::format("a number from {} to {}", low, high), [&](const json& value) {
    const double number = value.is_number() ? value.get<double>() : std::nan("");
    return number >= low && number <= high ? std::optional(number) : std::nullopt;
  });
}

bool RequestFields::flag(const char* name, bool otherwise) const {
  return read(name, otherwise, "true or false",
              [](const json& value) { return value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt; });
}

std::string RequestFields::text(const char* name, const std::string& otherwise) const {
  return read(name, otherwise, "a text", [](const json& value) {
    return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
  });
}

std::vector<std::string> RequestFields::texts(const char* name, size_t most) const {
  const json* const value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array() || value->size() > most ||
      !std::all_of(value->begin(), value->end(), [](const json& item) { return item.is_string(); }))
    refuse(name, fmt::format("expected a text or a list of at most {} texts, got {}", most, json_excerpt(*value)));
  return value->get<std::vector<std::string>>();
}

std::vector<int32_t> token_ids(const json& list, int64_t vocabulary, const RequestFields& fields, const char* name) {
  if (!list.is_array()) fields.refuse(name, "expected a list of token ids, got " + json_excerpt(list));
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const json& item : list) {
    const auto id = whole_number(item, 0, vocabulary - 1);
    if (!id)
      fields.refuse(name, fmt::format("expected token ids from 0 to {}, got {}", vocabulary - 1, json_excerpt(item)));
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

std::string percent_decoded(std::string_view part) {
  std::string text;
  for (size_t i = 0; i < part.size(); ++i) {
    const char* const digits = part.data() + i + 1;
    unsigned code = 0;
    const bool coded =
        part[i] == '%' && i + 2 < part.size() && std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2;
    text += coded ? static_cast<char>(code) : part[i];
    i += coded ? 2 : 0;
  }
  return text;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace capstan
