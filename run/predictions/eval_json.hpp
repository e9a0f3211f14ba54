// What `capstan eval --format json` prints, for the report, too. tests/cli/runs/test_eval.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "run/predictions/eval_report.hpp"

namespace capstan {

/// The figures by the names of print_text(); the classes; "confusion" (rows: true class), or for many classes
/// "confusions", the most frequent first; and "calibration".
nlohmann::ordered_json eval_json(const EvalReport& report);

}  // namespace capstan
