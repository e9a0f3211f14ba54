// Pictures as PNG.
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

}  // namespace capstan
