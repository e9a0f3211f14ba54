// Text and tables inside HTML, for all of run/report. Texts may be from a stranger's run: whatever goes into a page
// that is not written by Capstan must pass through escaped(). tests/run/test_report_parts.cpp holds it.
#pragma once

#include <string>
#include <string_view>

#include "run/summaries/run_table.hpp"

namespace capstan {

/// `text` for use between tags and inside quoted attributes: & < > " ' as entities, invalid UTF-8 and control
/// characters as U+FFFD.
std::string escaped(std::string_view text);

/// escaped() text, shortened to `characters` characters with an ellipsis.
std::string escaped_short(std::string_view text, size_t characters = 120);

// Lines of charts (chart.hpp), as legends and tables show them.

enum class LineStyle { thin, marked };  // marked: thick, with a dot at every point

/// The class of the style sheet for the line with this index: after the last colour they repeat with a dash pattern.
std::string colour_class(int colour);

/// A sample of a line, for legends and tables.
std::string line_sample(int colour, LineStyle style = LineStyle::marked);

// Tables and lists of figures as HTML.

/// The rows of a table, the first of which is its header, in a region that scrolls; `name` is for screen readers.
/// Columns without any letter are aligned as numbers. With `coloured`, row i begins with a sample of line i.
std::string table_html(const Table& table, const std::string& name, bool coloured = false);

/// Names and values, in a row that wraps.
std::string figures_html(const Table& figures);

}  // namespace capstan
