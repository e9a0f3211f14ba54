// Patterns of names: * stands for any run of characters, dots and none included.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capstan {

/// What the stars of `pattern` stand for in `text`, each as little as possible; nothing if the pattern does not match.
std::optional<std::vector<std::string_view>> match_stars(std::string_view text, std::string_view pattern);

inline bool matches(std::string_view text, std::string_view pattern) { return match_stars(text, pattern).has_value(); }

/// Number of stars in a pattern.
size_t star_count(std::string_view pattern);

/// `name` with what the stars of `from` stand for in place of the stars of `to`, which must have as many, one by one:
/// encoder.3.ln, encoder.*, blocks.* -> blocks.3.ln. Nothing if `from` does not match.
std::optional<std::string> renamed(std::string_view name, std::string_view from, std::string_view to);

}  // namespace capstan
