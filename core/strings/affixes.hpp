// How a text begins and ends (std::string_view has these from C++20 on).
#pragma once

#include <string_view>

namespace capstan {

inline bool starts_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

inline bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace capstan
