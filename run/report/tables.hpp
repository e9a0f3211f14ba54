// Tables and lists of figures as HTML.
#pragma once

#include <string>

#include "run/summaries/run_table.hpp"

namespace capstan {

/// The rows of a table, the first of which is its header, in a region that scrolls; `name` is for screen readers.
/// Columns without any letter are aligned as numbers. With `coloured`, row i begins with a sample of line i.
std::string table_html(const Table& table, const std::string& name, bool coloured = false);

/// Names and values, in a row that wraps.
std::string figures_html(const Table& figures);

}  // namespace capstan
