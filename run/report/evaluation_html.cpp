// Writes an evaluation as HTML: figures, and a table of the classes. tests/cli/runs/test_report.cpp.
#include "run/report/evaluation_html.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "run/report/html.hpp"

namespace capstan {
namespace {

constexpr int64_t max_numbers = 20;  // classes of a matrix with numbers in its cells
constexpr size_t named_confusions = 10, name_length = 40, max_rows = 100;

const std::string& name_of(const EvalReport& report, int64_t c) { return report.classes[static_cast<size_t>(c)]; }

std::string short_name(const EvalReport& report, int64_t c) { return escaped_short(name_of(report, c), name_length); }

std::string cell_html(const EvalReport& report, int64_t truth, int64_t predicted) {
  const ClassificationReport& r = *report.classification;
  const int64_t count = r.count(truth, predicted);
  const bool numbers = r.classes() <= max_numbers;
  if (count == 0) return numbers ? "<td>0</td>" : "<td></td>";
  const double share = static_cast<double>(count) / static_cast<double>(r.of_class(truth));
  std::string out = fmt::format("<td class=\"{}{}\" style=\"--share:{:.3f}\"", truth == predicted ? "right" : "wrong",
                                share > 0.5 ? " strong" : "", share);
  if (numbers) return out + fmt::format(">{}</td>", count);
  return out + fmt::format(" title=\"{} of {} {}: predicted as {}\"></td>", count, r.of_class(truth),
                           short_name(report, truth), short_name(report, predicted));
}

std::string matrix_html(const EvalReport& report) {
  const ClassificationReport& r = *report.classification;
  std::string out = fmt::format(
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"confusion matrix\"><table class=\"confusion{}\">"
      "<thead><tr><th class=\"corner\">true class, predicted class</th>",
      r.classes() > max_numbers ? " dense" : "");
  for (int64_t c = 0; c < r.classes(); ++c)
    out += fmt::format("<th scope=\"col\" class=\"column\"><span>{}</span></th>", short_name(report, c));
  out += "</tr></thead><tbody>";
  for (int64_t truth = 0; truth < r.classes(); ++truth) {
    out += fmt::format("<tr><th scope=\"row\">{}</th>", short_name(report, truth));
    for (int64_t c = 0; c < r.classes(); ++c) out += cell_html(report, truth, c);
    out += "</tr>";
  }
  return out + "</tbody></table></div>\n";
}

std::string confusions_html(const EvalReport& report) {
  const ClassificationReport& r = *report.classification;
  Table table{{"true class", "predicted as", "examples", "of"}};
  for (const Confusion& c : most_frequent_confusions(r, named_confusions))
    table.push_back({name_of(report, c.truth), name_of(report, c.predicted), std::to_string(c.count),
                     std::to_string(r.of_class(c.truth))});
  return table.size() == 1 ? ""
                           : "<p class=\"sub\">Commonest confusions</p>" + table_html(table, "commonest confusions");
}

/// A table of the classes or labels, the most frequent first.
std::string classes_html(const EvalReport& report) {
  const std::vector<ClassFigures> figures = report.class_figures();
  std::vector<size_t> order(figures.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return figures[a].examples > figures[b].examples; });
  const char* const kind = report.labels ? "label" : "class";
  const std::string kinds = report.labels ? "labels" : "classes";
  Table table{{kind, "precision", "recall", "F1", "examples"}};
  if (figures.front().threshold) table.front().push_back("threshold");
  for (size_t i = 0; i < std::min(order.size(), max_rows); ++i) {
    const ClassFigures& f = figures[order[i]];
    table.push_back(
        {report.classes[order[i]], f.text(f.precision), f.text(f.recall), f.text(f.f1), std::to_string(f.examples)});
    if (f.threshold) table.back().push_back(fmt::format("{:.2f}", *f.threshold));
  }
  std::string out = table_html(table, kinds);
  if (order.size() > max_rows)
    out += fmt::format("<p class=\"hint\">The {} most frequent of {}.</p>\n", max_rows, order.size());
  return order.size() > max_numbers
             ? fmt::format("<details><summary>All {} {}</summary>{}</details>\n", order.size(), kinds, out)
             : out;
}

}  // namespace

std::string evaluation_html(const EvalReport& report) {
  Table figures;
  for (const Figure& figure : report.figures()) {
    std::string name = figure.name;
    std::replace(name.begin(), name.end(), '_', ' ');
    if (!figure.over.empty()) name += ' ' + figure.over;
    figures.push_back({name, fmt::format("{:.{}f}", figure.value, std::min(figure.digits, 4))});
  }
  std::string out = figures_html(figures);
  const auto& r = report.classification;
  if (r && r->classes() <= widest_confusion_matrix) out += matrix_html(report);
  if (r && r->classes() > max_numbers) out += confusions_html(report);
  if (!report.class_figures().empty()) out += classes_html(report);
  if (!report.pairs || report.pairs->examples.empty()) return out;
  Table examples{{"source", "target", "written"}};
  for (const PairExample& example : report.pairs->examples)
    examples.push_back({example.source, example.target, example.written});
  return out + "<p class=\"sub\">The first pairs</p>" + table_html(examples, "pairs");
}

}  // namespace capstan
