// Patterns of names: * stands for any run of characters, dots and none included.
#pragma once

#include <string_view>

namespace capstan {

bool matches(std::string_view text, std::string_view pattern);

}  // namespace capstan
