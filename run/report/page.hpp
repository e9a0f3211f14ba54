// The page of `capstan report`, also for the Python package. tests/cli/runs/test_report.cpp holds what is on it, and
// tests/interop/report_pages.py and browser.py open it in a browser.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/predictions/eval_report.hpp"
#include "run/report/model_view.hpp"
#include "run/summaries/run_record.hpp"

namespace capstan {

/// A run of the page.
struct ReportedRun {
  RunRecord record;
  std::optional<EvalReport> evaluation = {};        // of a classifier, or of pairs
  std::optional<ModelView> model = {};              // of a model with blocks
  std::vector<ClassNgrams> ngrams = {};             // of a linear classifier
  std::pair<std::string, std::string> sample = {};  // of a language model: a prompt and what it wrote
  std::vector<std::string> notes = {};              // why something is missing
};

/// One HTML document, which loads nothing and forbids the browser to load anything; light or dark as the reader's
/// system prefers. Results precede settings. `runs`: the best first; what was derived from their models is shown run by
/// run.
std::string report_page(const std::vector<ReportedRun>& runs);

// report.css and report.js, as run/CMakeLists.txt puts them into the program.

extern const char *const report_style, *const report_script;

}  // namespace capstan
