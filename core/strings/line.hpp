// Lines of a stream, of a bounded length.
#pragma once

#include <cstddef>
#include <istream>
#include <string>

namespace capstan {

/// Reads the next line, without its '\n'; false at the end. Throws Error for a line of more than `most` bytes: input such as
/// /dev/zero has no line's end, and would fill the memory.
bool read_line(std::istream& in, std::string& line, size_t most = size_t{1} << 26);

/// All that is left of the input. Throws Error for more than `most` bytes; `name` is what the input is called.
std::string read_all(std::istream& in, const std::string& name, size_t most);

}  // namespace capstan
