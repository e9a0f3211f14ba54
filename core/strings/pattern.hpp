// Patterns of names: * stands for any run of characters, dots and none included. They decide which parameters a run
// freezes, so they cannot change: tests/core/strings/test_pattern.cpp.
#pragma once

#include <string_view>

namespace capstan {

/// Is the whole text of the pattern's form?
bool matches(std::string_view text, std::string_view pattern);

}  // namespace capstan
