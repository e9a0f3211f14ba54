// Text inside HTML.
#pragma once

#include <string>
#include <string_view>

namespace capstan {

/// `text` for use between tags and inside quoted attributes: & < > " ' as entities, invalid UTF-8 and control
/// characters as U+FFFD.
std::string escaped(std::string_view text);

/// escaped() text, shortened to `characters` characters with an ellipsis.
std::string escaped_short(std::string_view text, size_t characters = 120);

}  // namespace capstan
