// Two models on the same texts: figures of both, whether their difference is chance, and the texts on which they
// differ. For `capstan compare A B --data`. tests/cli/runs/test_compare_models.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/inputs/text_input.hpp"
#include "run/setup/saved_run.hpp"
#include "train/evaluation/paired_test.hpp"

namespace capstan {

/// A figure of both models. The interval and the p-value are those of the difference, second - first.
struct ComparedFigure {
  std::string name, test;  // by which the p-value was found
  double first = 0, second = 0;
  PairedDifference paired;
};

/// A text to which two classifiers give different labels.
struct DifferingText {
  std::string label, first, second, place, text;
};

struct ModelComparison {
  int64_t texts = 0;
  std::vector<ComparedFigure> figures;
  int64_t right[2][2] = {};  // of classifiers: texts on which the first is right (or not, 0), and the second
  std::vector<DifferingText> differing;
};

/// Reads labelled texts with each run's columns: two classifiers, whose classes may differ (a label that a model does
/// not know is one that it gets wrong), or two language models, whose tokenizers may. The inputs are of the same file.
/// Throws Error for other models, and where the runs read different rows. May stop (core/base/stop.hpp).
ModelComparison compare_models(const SavedRun& first, const SavedRun& second, TextInput& of_first,
                               TextInput& of_second);

/// TSV with a header: label, both predictions, place and text.
std::string differing_tsv(const ModelComparison& comparison, const std::string& first, const std::string& second);

}  // namespace capstan
