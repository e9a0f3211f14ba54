// Output of `capstan data check`: tables, warnings and errors; or all of it as JSON.
#pragma once

#include <ostream>

#include "data/checks/report.hpp"

namespace capstan {

void print_text(const DataReport& report, std::ostream& out);
/// One object on one line: a list of objects for each table, then "warnings" and "errors".
void print_json(const DataReport& report, std::ostream& out);

}  // namespace capstan
