// What the sources include, held against a table of allowed arrows between rooms (tests/arrows.txt).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace capstan::testing {

/// Every broken rule as "file:line: what is wrong", sorted; empty when all hold. Rules:
/// - an `#include "..."` names an existing file, in the same room or in one that the table allows;
/// - no two subjects (a header and its source are one) include each other, directly or through others;
/// - a room has at most 30 subjects;
/// - no two rooms have the same last name, except for `kernels`;
/// - the table names existing folders, and every file is in one of them; a room's arrows point up in the table.
/// Files are those below the first folders of the table's rooms (core, nn, ...) in `root`; `table` is a path in `root`.
std::vector<std::string> broken_rules(const std::filesystem::path& root, const std::string& table);

}  // namespace capstan::testing
