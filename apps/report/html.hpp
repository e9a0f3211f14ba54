// Text inside HTML.
#pragma once

#include <string>
#include <string_view>

namespace capstan {

/// `text` as it may stand between tags and inside quoted attributes: & < > " ' as entities, bytes that are no UTF-8 and
/// control characters as U+FFFD.
std::string escaped(std::string_view text);

/// The same, of at most `characters` characters; what was cut off is shown as an ellipsis.
std::string escaped_short(std::string_view text, size_t characters);

}  // namespace capstan
