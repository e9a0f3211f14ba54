// The first step of reading a CSV: which characters separate and quote its fields.
// tests/data/labelled/test_formats.cpp.
#pragma once

#include <string>
#include <string_view>

#include "data/formats/table_format.hpp"

namespace capstan {

/// "commas", "tabs", "semicolons" or "bars"; of others, "':'".
std::string name_of_delimiter(char delimiter);

/// The dialect of a CSV: what is `given`, and the rest as its first rows have it. The delimiter is what a first line
/// "sep=;" says, otherwise the comma, semicolon, tab or bar that divides the first row, and most rows into equally many
/// fields; the comma where none does. Double quotes become single ones where most rows have a field in these, and they
/// divide the rows no worse. Throws Error where two delimiters do about equally well.
Dialect found_dialect(std::string_view content, const std::string& file, Dialect given = {});

/// What a user would not expect of a CSV: "columns are separated by semicolons, and quoted by '"; else empty.
std::string unusual(const Dialect& dialect);

}  // namespace capstan
