// The tensors of a file, for `capstan inspect`. tests/cli/runs/test_commands.cpp.
#pragma once

#include <ostream>
#include <string>

namespace capstan {

/// Prints a line for each tensor of a file: name, type, shape, root mean square and range of its elements. Rows that
/// the file leaves out count as zeros.
void print_tensors(const std::string& path, std::ostream& out);

}  // namespace capstan
