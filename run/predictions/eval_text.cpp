// Prints the figures of `capstan eval` as text, with tables of classes and confusions. tests/cli/runs/test_eval.cpp.
#include <algorithm>

#include <fmt/core.h>

#include "core/strings/printable.hpp"
#include "run/predictions/eval_report.hpp"

namespace capstan {
namespace {

/// Up to this many classes the confusion matrix is printed as text.
constexpr int64_t widest_table = 10;
/// With more classes than widest_table, so many of the most frequent confusions are listed instead.
constexpr size_t named_confusions = 15;

/// Names of classes as they are printed, each with spaces after it up to the width of the widest.
std::vector<std::string> aligned(std::vector<std::string> names) {
  size_t width = 0;
  for (std::string& name : names) width = std::max(width, display_columns(name = printable_line(name)));
  for (std::string& name : names) name += std::string(width - display_columns(name), ' ');
  return names;
}

/// Aligns names under a heading.
std::vector<std::string> aligned_with(const std::string& heading, std::vector<std::string> names) {
  names.insert(names.begin(), heading);
  return aligned(std::move(names));
}

/// Prints a row for each class or label; columns that the report has no figures for are left out.
void print_classes(const EvalReport& report, std::ostream& out) {
  const std::vector<ClassFigures> figures = report.class_figures();
  if (figures.empty()) return;
  const std::vector<std::string> names = aligned_with("class", report.classes);
  const bool thresholds = figures.front().threshold.has_value();
  const bool ranked = report.ranked && report.ranked->kept();
  out << fmt::format("\n{}{:>11}{:>9}{:>9}{}{:>10}{}\n", names[0], "precision", "recall", "f1",
                     ranked ? "  avg.prec" : "", "examples", thresholds ? "  threshold" : "");
  for (size_t c = 0; c < figures.size(); ++c) {
    const ClassFigures& of_class = figures[c];
    const std::string average =
        !ranked ? ""
                : fmt::format("{:>10}",
                              of_class.average_precision ? fmt::format("{:.4f}", *of_class.average_precision) : "-");
    out << fmt::format("{}{:>11}{:>9}{:>9}{}{:>10}{}\n", names[c + 1], of_class.text(of_class.precision),
                       of_class.text(of_class.recall), of_class.text(of_class.f1), average, of_class.examples,
                       thresholds ? fmt::format("{:>11.2f}", *of_class.threshold) : "");
  }
}

void print_confusion(const EvalReport& report, std::ostream& out) {
  const ClassificationReport& r = *report.classification;
  const std::vector<std::string> names = aligned_with("", report.classes);
  out << "\nconfusion: rows are true classes, columns predicted classes\n" << names[0];
  std::vector<size_t> widths;
  for (const std::string& name : report.classes) {
    const std::string heading = printable_line(name);
    widths.push_back(std::max<size_t>(display_columns(heading), 6));
    out << "  " << std::string(widths.back() - display_columns(heading), ' ') << heading;
  }
  out << '\n';
  for (int64_t truth = 0; truth < r.classes(); ++truth) {
    out << names[static_cast<size_t>(truth) + 1];
    for (int64_t c = 0; c < r.classes(); ++c)
      out << fmt::format("  {:>{}}", r.count(truth, c), widths[static_cast<size_t>(c)]);
    out << '\n';
  }
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
}

}  // namespace capstan
