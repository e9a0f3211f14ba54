// Bytes as letters, for files that hold text (RFC 4648, section 4).
#pragma once

#include <string>
#include <string_view>

namespace capstan {

std::string to_base64(std::string_view bytes);

/// Throws Error unless the text is what to_base64() makes of some bytes.
std::string from_base64(std::string_view text);

}  // namespace capstan
