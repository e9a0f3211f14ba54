// How messages list names. (Not fmt::join: GCC 12 at -O3 warns inside fmt 9 wherever it is used.)
#pragma once

#include <string>
#include <vector>

namespace capstan {

/// "a, b, c"; of more than 20 names the first ones and the count.
std::string listed(const std::vector<std::string>& names, const char* separator = ", ");

}  // namespace capstan
