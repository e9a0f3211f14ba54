// What `capstan data check` prints. tests/cli/inputs/test_data_check.cpp.
#pragma once

#include <ostream>

#include "data/checks/report.hpp"

namespace capstan {

/// Prints warnings, errors and tables.
void print_text(const DataReport& report, std::ostream& out);

/// Prints one object on one line: a list of objects for each table, then "warnings" and "errors".
void print_json(const DataReport& report, std::ostream& out);

}  // namespace capstan
