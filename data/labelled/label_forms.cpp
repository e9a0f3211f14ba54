// Compares labels without invisible characters and the like: common_form(), folded_label(), visible_label().
// tests/data/labelled/test_labelled_source.cpp and test_tables_people_have.cpp.
#include "data/labelled/label_forms.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "core/base/error.hpp"
#include "core/strings/printable.hpp"
#include "core/strings/strings.hpp"
#include "core/strings/utf8.hpp"
#include "data/formats/row_labels.hpp"

namespace capstan {
namespace {

/// No-break blanks, spaces of other widths, and characters without width.
bool is_invisible(uint32_t code) {
  return code == 0xa0 || code == 0xad || (code >= 0x2000 && code <= 0x200f) || code == 0x202f || code == 0x2060 ||
         code == 0x3000 || code == 0xfeff;
}

/// Capitals and widths of letters as one (NFKC and case folding). A label that is longer than any name stays as it is,
/// since the time grows with the square of the marks in a row.
std::string folded(const std::string& text) {
  struct Free {
    void operator()(utf8proc_uint8_t* bytes) const { std::free(bytes); }
  };
  constexpr size_t longest_name = 1000;
  if (text.size() > longest_name) return text;
  constexpr auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD);
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &mapped, options);
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(mapped);
  return size < 0 ? text : std::string(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
}

}  // namespace

std::string common_form(const std::string& label) {
  const std::string form(label_text(label));
  if (const std::string lower = lower_case(form); lower == "true" || lower == "false") return lower;
  const size_t point = form.find('.');
  if (point == std::string::npos || form.find_first_not_of('0', point + 1) != std::string::npos) return form;
  const std::string whole = form.substr(0, point);
  return point + 1 < form.size() && parse_integer(whole) ? whole : form;
}

std::string folded_label(const std::string& label) {
  std::string result;
  const std::string form = common_form(label);
  if (form == "true" || form == "false") return form == "true" ? "1" : "0";
  if (!is_utf8(form)) return form;
  for_each_character(folded(form), [&](const Utf8Character& character, std::string_view bytes) {
    const uint32_t code = character.code_point;
    if (code != ' ' && code != '\t' && !is_invisible(code)) result += bytes;
  });
  return result;
}

std::string visible_label(const std::string& label) {
  const std::string shown = printable_line(label);
  std::string visible;
  for_each_character(shown, [&](const Utf8Character& character, std::string_view bytes) {
    const uint32_t code = character.code_point;
    visible += is_invisible(code) ? fmt::format("\\u{:04x}", code) : std::string(bytes);
  });
  return visible;
}

}  // namespace capstan
