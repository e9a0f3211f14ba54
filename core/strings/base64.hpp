// Bytes as text (RFC 4648, section 4): tokens of vocabularies, pictures of reports, sessions.
// tests/core/strings/test_text.cpp.
#pragma once

#include <string>
#include <string_view>

namespace capstan {

std::string to_base64(std::string_view bytes);

/// The inverse of to_base64(). Throws Error for any other text.
std::string from_base64(std::string_view text);

}  // namespace capstan
