// What `capstan report` shows of a run: its record, and what its model and its data tell. apps/commands/report_command
// asks for it and page.cpp shows it; tests/cli/runs/test_report.cpp.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/predictions/eval_report.hpp"
#include "run/report/model_view.hpp"
#include "run/summaries/run_record.hpp"

namespace capstan {

struct ReportedRun {
  RunRecord record;
  std::optional<EvalReport> evaluation = {};        // of a classifier, or of pairs
  std::optional<ModelView> model = {};              // of a model with blocks
  std::vector<ClassNgrams> ngrams = {};             // of a linear classifier
  std::pair<std::string, std::string> sample = {};  // of a language model: a prompt and what it wrote
  std::vector<std::string> notes = {};              // why something is missing
};

struct ReportOptions {
  std::vector<std::string> runs;  // run folders, or folders of runs
  std::string output;             // the HTML file
  std::string split, text;        // the split of results and the example text; empty: chosen
  bool curves_only = false;       // without what needs the models and their data
  bool trust = false;             // show texts of files that may not be the run's own
};

/// The runs, the best first. What cannot be read becomes a note and a warning, since curves are useful without a model.
/// Throws ConfigError for models of different types, whose losses cannot share an axis, and for an output that may not
/// be written.
std::vector<ReportedRun> reported_runs(const ReportOptions& options);

}  // namespace capstan
