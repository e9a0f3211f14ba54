// Output of `capstan eval`: figures, one per line, and for classifiers a table of the classes; or all of it as JSON.
// Programs, the report and the Python package get figures by name, so that the names are part of the interface.
// tests/cli/runs/test_eval.cpp, test_multi_label.cpp and test_decisions.cpp hold what is printed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "run/predictions/adapted.hpp"
#include "run/predictions/predictions.hpp"
#include "run/setup/saved_run.hpp"
#include "train/evaluation/evaluate.hpp"

namespace capstan {

struct Figure {
  std::string name;
  double value;
  int digits;             // digits after the point that are printed; 0: a count
  std::string over = "";  // what the figure leaves out: "over 70 of 77 classes"
};

/// Figures of one class, or of one label.
struct ClassFigures {
  double precision, recall, f1;
  int64_t examples;
  std::optional<double> threshold = std::nullopt;          // where each label has its own
  std::optional<double> average_precision = std::nullopt;  // none where there is no example
  bool occurs = true;  // false: no example, and never predicted; the others are then 0, and shown as "-"
  /// "0.8750", or "-".
  std::string text(double figure) const;
};

/// What eval found: parts that the kind of model, or of data, does not have are empty.
struct EvalReport {
  std::string split;
  Evaluation total;
  bool predicts_tokens = false;
  std::optional<ClassificationReport> classification;  // of one label per text: what the run's rule decides
  std::optional<ClassificationReport> plain;           // the likeliest classes, if the rule is another one
  DecisionGoal goal;                                   // what the run's train.monitor asks of decisions
  std::optional<RankedTexts> ranked;                   // of a classifier
  std::optional<LabelFigures> labels;                  // multi-label, at the run's threshold
  std::vector<std::string> classes;                    // their names
  std::optional<PairReport> pairs;                     // of data of type pairs
  std::optional<AdaptedFigures> adapted;               // of a language model that learns from what it has scored
  std::optional<TextSize> text;                        // of the split

  /// All figures: "loss", "accuracy", "macro_f1" and so on.
  std::vector<Figure> figures() const;
  /// The figures of each of `classes`; none unless the model is a classifier.
  std::vector<ClassFigures> class_figures() const;
  /// The figure of this name. Throws Error that lists the names that there are.
  double figure(const std::string& name) const;
};

/// `completions`: how the completions of pairs are written. `adapting`: unless empty, a language model's split is
/// evaluated a second time, learning from what it has scored.
EvalReport evaluate_split(const SavedRun& run, const DataSource& data, Split split,
                          const PredictOptions& completions = {}, const AdaptOptions& adapting = {});

void print_text(const EvalReport& report, std::ostream& out);
/// The figures by the names of print_text(); the classes; "confusion" (rows: true class), or for many classes
/// "confusions", the most frequent first; and "calibration". For the report of a run, too.
nlohmann::ordered_json eval_json(const EvalReport& report);
/// eval_json() on one line.
void print_json(const EvalReport& report, std::ostream& out);

}  // namespace capstan
