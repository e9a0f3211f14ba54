// The evaluation of a model on a split, as HTML: a part of the page of `capstan report` (page.cpp).
// tests/cli/runs/test_report.cpp holds it.
#pragma once

#include <string>

#include "run/predictions/eval_report.hpp"

namespace capstan {

/// All figures; of a classifier a row per class and, up to widest_confusion_matrix, the confusion matrix, with the most
/// frequent confusions where it is too large to read numbers from; of pairs examples of what was written.
std::string evaluation_html(const EvalReport& report);

}  // namespace capstan
