// "Did you mean ...?": the known word nearest to a misspelt one, for messages about keys, commands, classes and
// parameters. tests/core/strings/test_text.cpp has examples.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace capstan {

/// Smallest number of insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that `word` probably stands for: few edits away,
/// or one is a prefix of the other. Empty if there is none.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace capstan
