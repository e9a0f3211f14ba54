// Normalisation of texts by utf8proc. ASCII takes a short way: it is copied or lowered. Very long runs of marks are
// handled in parts, because utf8proc's time grows with the square of their number.
#include "data/tokenizers/normalisation.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/strings/utf8.hpp"

namespace capstan {
namespace {

bool is_ascii(char c) { return static_cast<uint8_t>(c) < 0x80; }

utf8proc_option_t options_of(const Normalisation& rule) {
  int options = UTF8PROC_STABLE;
  if (rule.form != NormalForm::none) options |= UTF8PROC_COMPOSE;
  if (rule.form == NormalForm::nfkc) options |= UTF8PROC_COMPAT;
  if (rule.case_fold) options |= UTF8PROC_CASEFOLD;
  return static_cast<utf8proc_option_t>(options);
}

/// Appends what utf8proc makes of a text.
void append_mapped(std::string& result, std::string_view text, utf8proc_option_t options) {
  struct Free {
    void operator()(utf8proc_uint8_t* bytes) const { std::free(bytes); }
  };
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &mapped, options);
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(mapped);
  if (size < 0) throw Error(fmt::format("the text cannot be normalised: {}", utf8proc_errmsg(size)));
  result.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
}

/// Marks are ordered in a time that grows with the square of their number, so more than about this many in a row are
/// handled in parts. The longest sequence that occurs in a language has five or so.
constexpr size_t max_marks = 1000;

/// How many marks are at the end of a text after `point` is appended, if `marks` were there before. What is ordered is
/// the decomposition of `point`, which can have marks where the code point itself is none, and the reverse.
size_t marks_after(size_t marks, utf8proc_int32_t point, utf8proc_option_t options) {
  std::array<utf8proc_int32_t, 32> parts{};  // 18 is the most that one decomposes to
  int boundclass = UTF8PROC_BOUNDCLASS_START;
  const auto capacity = static_cast<utf8proc_ssize_t>(parts.size());
  const utf8proc_ssize_t size = utf8proc_decompose_char(point, parts.data(), capacity, options, &boundclass);
  for (utf8proc_ssize_t i = 0; i < std::min(size, capacity); ++i)
    marks = utf8proc_get_property(parts[static_cast<size_t>(i)])->combining_class != 0 ? marks + 1 : 0;
  return marks;
}

/// The end of the first part of a text that is handled at once.
size_t end_of_part(std::string_view text, utf8proc_option_t options) {
  if (text.size() <= max_marks) return text.size();  // a code point does not decompose to more marks than it has bytes
  size_t marks = 0;
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t point = -1;
    const utf8proc_ssize_t size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                                   static_cast<utf8proc_ssize_t>(text.size() - at), &point);
    if (size <= 0) return text.size();  // not UTF-8: utf8proc_map() says so
    marks = marks_after(marks, point, options);
    at += static_cast<size_t>(size);
    if (marks >= max_marks) return at;
  }
  return text.size();
}

}  // namespace

std::string normalised(std::string_view text, const Normalisation& rule) {
  std::string result;
  result.reserve(text.size());
  const utf8proc_option_t options = options_of(rule);
  for (size_t at = 0; at < text.size();) {
    // An ASCII character changes only together with a non-ASCII one after it: "e" and an accent.
    const bool alone = is_ascii(text[at]) && (at + 1 == text.size() || is_ascii(text[at + 1]));
    if (alone) {
      const char c = text[at++];
      result.push_back(rule.case_fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
      continue;
    }
    size_t end = at + 1;
    while (end < text.size() && !is_ascii(text[end])) ++end;
    while (at < end) {
      const size_t part = end_of_part(text.substr(at, end - at), options);
      append_mapped(result, text.substr(at, part), options);
      at += part;
    }
  }
  return result;
}

size_t normalisation_boundary(std::string_view text, size_t at) {
  if (at >= text.size()) return text.size();
  while (at > 0 && !is_ascii(text[at])) --at;
  return at;
}

std::vector<std::pair<std::string, std::string>> folded_lower_case() {
  std::vector<std::pair<std::string, std::string>> replaced;
  for (utf8proc_int32_t point = 0x80; point < 0x110000; ++point) {
    if (!utf8proc_codepoint_valid(point) || utf8proc_tolower(point) != point) continue;
    std::array<utf8proc_int32_t, 32> parts{};
    int boundclass = UTF8PROC_BOUNDCLASS_START;
    const utf8proc_ssize_t size = utf8proc_decompose_char(
        point, parts.data(), static_cast<utf8proc_ssize_t>(parts.size()), UTF8PROC_CASEFOLD, &boundclass);
    if (size == 1 && parts[0] == point) continue;
    std::string letter, folded;
    append_utf8(letter, static_cast<uint32_t>(point));
    for (utf8proc_ssize_t i = 0; i < size; ++i)
      append_utf8(folded, static_cast<uint32_t>(parts[static_cast<size_t>(i)]));
    replaced.emplace_back(letter, folded);
  }
  return replaced;
}

void add_to_json(const Normalisation& rule, nlohmann::json& json) {
  if (rule.form != NormalForm::none) json["normalise"] = enum_name(rule.form);
  if (rule.case_fold) json["case_fold"] = true;
}

Normalisation normalisation_from(const nlohmann::json& json) {
  const auto name = json.value("normalise", enum_name(NormalForm::none));
  const auto form = enum_value<NormalForm>(name);
  if (!form) throw Error(fmt::format("unknown normal form '{}'", name));
  return {*form, json.value("case_fold", false)};
}

}  // namespace capstan
