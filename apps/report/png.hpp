// Pictures inside a page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace capstan {

/// width x height pixels, 4 bytes each: red, green, blue, opacity.
struct Pixels {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> rgba;
};

/// PNG (ISO/IEC 15948), 8 bits a channel, no filter.
std::string to_png(const Pixels& pixels);
/// RFC 4648.
std::string to_base64(const std::string& bytes);

}  // namespace capstan
