// "Did you mean ...?": the known word nearest to a misspelt one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace capstan {

/// The fewest insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that `word` was probably meant to be: few edits away,
/// or one is the beginning of the other. Empty if none is.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace capstan
