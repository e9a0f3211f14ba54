// What metrics.jsonl tells about runs, as charts.
#pragma once

#include <string>
#include <vector>

#include "run/summaries/run_record.hpp"

namespace capstan {

/// Charts of training and validation with a legend; `names` are those of the runs. Empty for models that are solved
/// for, which have no curves.
std::string curves_html(const std::vector<RunRecord>& runs, const std::vector<std::string>& names);

}  // namespace capstan
