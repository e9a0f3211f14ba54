// The page of `capstan report`, also for the Python package: the data as JSON, which report.js draws.
// tests/cli/runs/test_report.cpp holds what is in the JSON, and tests/interop/report_pages.py opens pages in a browser.
#pragma once

#include <string>
#include <vector>

#include "run/report/reported_run.hpp"

namespace capstan {

/// One HTML document, which loads nothing and forbids the browser to load anything; light or dark as the reader's
/// system prefers. Results precede settings. `runs`: the best first; what was derived from their models is shown run by
/// run.
std::string report_page(const std::vector<ReportedRun>& runs);

}  // namespace capstan
