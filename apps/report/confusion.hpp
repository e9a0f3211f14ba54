// What a classifier got right and wrong, as HTML.
#pragma once

#include <string>

#include "apps/runs/eval_report.hpp"

namespace capstan {

/// Figures, and the confusion matrix: as a table, or as a picture with the commonest confusions by name where the
/// classes are too many to stand beside each other.
std::string confusion_html(const EvalReport& report);

}  // namespace capstan
