// Prints the figures of `capstan eval` as text, with tables of classes and confusions. tests/cli/runs/test_eval.cpp.
#include <fmt/core.h>

#include "core/strings/printable.hpp"
#include "run/predictions/eval_report.hpp"
#include "run/summaries/text_table.hpp"

namespace capstan {
namespace {

/// Up to this many classes the confusion matrix is printed as text.
constexpr int64_t widest_table = 10;
/// With more classes than widest_table, so many of the most frequent confusions are listed instead.
constexpr size_t named_confusions = 15;

/// Prints a row for each class or label; columns that the report has no figures for are left out.
void print_classes(const EvalReport& report, std::ostream& out) {
  const std::vector<ClassFigures> figures = report.class_figures();
  if (figures.empty()) return;
  const bool ranked = report.ranked && report.ranked->kept(), thresholds = figures.front().threshold.has_value();
  Table table{{"class", "precision", "recall", "f1"}};
  if (ranked) table.front().emplace_back("avg.prec");
  table.front().emplace_back("examples");
  if (thresholds) table.front().emplace_back("threshold");
  for (size_t c = 0; c < figures.size(); ++c) {
    const ClassFigures& of_class = figures[c];
    table.push_back({report.classes[c], of_class.text(of_class.precision), of_class.text(of_class.recall),
                     of_class.text(of_class.f1)});
    if (ranked)
      table.back().push_back(of_class.average_precision ? fmt::format("{:.4f}", *of_class.average_precision) : "-");
    table.back().push_back(std::to_string(of_class.examples));
    if (thresholds) table.back().push_back(fmt::format("{:.2f}", *of_class.threshold));
  }
  out << '\n';
  print_text(table, out);
}

void print_confusion(const EvalReport& report, std::ostream& out) {
  const ClassificationReport& r = *report.classification;
  Table table{{""}};
  table.front().insert(table.front().end(), report.classes.begin(), report.classes.end());
  for (int64_t truth = 0; truth < r.classes(); ++truth) {
    table.push_back({report.classes[static_cast<size_t>(truth)]});
    for (int64_t c = 0; c < r.classes(); ++c) table.back().push_back(std::to_string(r.count(truth, c)));
  }
  out << "\nconfusion: rows are true classes, columns predicted classes\n";
  print_text(table, out);
}

void print_most_frequent_confusions(const EvalReport& report, std::ostream& out) {
  const ClassificationReport& r = *report.classification;
  const std::vector<Confusion> all = most_frequent_confusions(r, named_confusions);
  if (!all.empty()) out << "\ncommonest confusions\n";
  for (const Confusion& c : all)
    out << fmt::format("{:>6} of {}  {} predicted as {}\n", c.count, r.of_class(c.truth),
                       printable_line(report.classes[static_cast<size_t>(c.truth)]),
                       printable_line(report.classes[static_cast<size_t>(c.predicted)]));
}

void print_coverage(const ClassificationReport& report, std::ostream& out) {
  Table table{{"reject", "answered", "accuracy"}};
  for (const CoveragePoint& point : report.coverage())
    table.push_back({fmt::format("{:.2f}", point.probability), fmt::format("{:.4f}", point.coverage),
                     point.coverage > 0 ? fmt::format("{:.4f}", point.accuracy) : "-"});
  out << "\npredict --reject P answers the texts whose likeliest class has the probability P or more\n";
  print_text(table, out);
}

}  // namespace

void print_text(const EvalReport& report, std::ostream& out) {
  out << fmt::format("split {}\n", report.split);
  for (const Figure& figure : report.figures())
    out << fmt::format("{} {:.{}f}{}{}\n", figure.name, figure.value, figure.digits, figure.over.empty() ? "" : " ",
                       figure.over);
  print_classes(report, out);
  if (!report.classification) return;
  if (report.classification->classes() <= widest_table)
    print_confusion(report, out);
  else
    print_most_frequent_confusions(report, out);
  print_coverage(*report.classification, out);
}

}  // namespace capstan
