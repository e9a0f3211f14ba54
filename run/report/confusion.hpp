// The evaluation of a classifier, as HTML.
#pragma once

#include <string>

#include "run/predictions/eval_report.hpp"

namespace capstan {

/// Figures, and the confusion matrix: as a table, or, with many classes, as a picture and a list of the most frequent
/// confusions; beyond widest_confusion_matrix the list alone.
std::string confusion_html(const EvalReport& report);

}  // namespace capstan
