// The page of `capstan report`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/predictions/eval_report.hpp"
#include "run/report/model_view.hpp"
#include "run/summaries/run_record.hpp"

namespace capstan {

/// A run of the page.
struct ReportedRun {
  RunRecord record;
  std::optional<EvalReport> evaluation;  // of a classifier
  std::optional<ModelView> model;
  std::vector<std::string> notes;  // why something is missing
};

/// One HTML document without scripts and external files; light or dark as the reader's system prefers.
std::string report_page(const std::vector<ReportedRun>& runs);

}  // namespace capstan
