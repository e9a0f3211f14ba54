#include "run/report/confusion.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "run/report/heat_map.hpp"
#include "run/report/html.hpp"

namespace capstan {
namespace {

constexpr int64_t most_columns = 20;
constexpr size_t named_confusions = 10, name_length = 40;

std::string name_of(const EvalReport& report, int64_t c) { return report.classes[static_cast<size_t>(c)]; }

/// Share of the examples of class `truth` that were predicted as `predicted`.
double share(const ClassificationReport& r, int64_t truth, int64_t predicted) {
  return static_cast<double>(r.count(truth, predicted)) / static_cast<double>(std::max<int64_t>(1, r.of_class(truth)));
}

std::string table_html(const EvalReport& report) {
  const ClassificationReport& r = *report.classification;
  std::string out =
      "<div class=\"wide\"><table class=\"confusion\"><thead><tr><th class=\"corner\">true class, predicted class</th>";
  for (int64_t c = 0; c < r.classes(); ++c)
    out += fmt::format("<th class=\"column\" title=\"{}\"><span>{}</span></th>", escaped(name_of(report, c)),
                       escaped_short(name_of(report, c), name_length));
  out += "<th class=\"column\"><span>recall</span></th></tr></thead><tbody>";
  for (int64_t truth = 0; truth < r.classes(); ++truth) {
    out += fmt::format("<tr><th title=\"{}\">{}</th>", escaped(name_of(report, truth)),
                       escaped_short(name_of(report, truth), name_length));
    for (int64_t c = 0; c < r.classes(); ++c) {
      const double part = share(r, truth, c);
      out += fmt::format("<td class=\"{}{}\" style=\"--share:{:.3f}\">{}</td>", c == truth ? "right" : "wrong",
                         part > 0.5 ? " strong" : "", part, r.count(truth, c));
    }
    out += fmt::format("<td class=\"sum\">{:.1f} %</td></tr>", 100 * r.recall(truth));
  }
  return out + "</tbody></table></div>\n";
}

std::string many_classes_html(const EvalReport& report) {
  const ClassificationReport& r = *report.classification;
  std::string out;
  if (r.classes() <= widest_confusion_matrix) {
    HeatMap map{"rows: true class, columns: predicted class", {}, "true class", "predicted class"};
    map.matrix.rows = map.matrix.columns = static_cast<size_t>(r.classes());
    for (int64_t truth = 0; truth < r.classes(); ++truth)
      for (int64_t c = 0; c < r.classes(); ++c) map.matrix.values.push_back(static_cast<float>(share(r, truth, c)));
    out = to_html({map}, "share of the true class");
  }
  const std::vector<Confusion> frequent = most_frequent_confusions(r, named_confusions);
  if (frequent.empty()) return out;
  out += "<p>Commonest confusions:</p><ol>";
  for (const Confusion& c : frequent)
    out += fmt::format("<li>{} of {} predicted as {}: {}</li>", c.count, r.of_class(c.truth),
                       escaped_short(name_of(report, c.predicted), name_length),
                       escaped_short(name_of(report, c.truth), name_length));
  return out + "</ol>\n";
}

/// The labels of a multi-label classifier, the most frequent first.
std::string labels_html(const EvalReport& report) {
  constexpr size_t most_rows = 100;
  const LabelFigures& figures = *report.labels;
  std::string out = fmt::format(
      "<p>{} examples of the {} split: loss {:.4f} nats, accuracy {:.2f} %, micro F1 {:.4f}, macro F1 {:.4f} at "
      "threshold {:.2f}",
      figures.texts, escaped(report.split), report.total.loss(), 100 * report.total.accuracy(), figures.all.f1(),
      figures.macro_f1(), figures.threshold);
  for (const PrecisionAt& at : figures.precision_at) out += fmt::format(", P@{} {:.4f}", at.k, at.precision);
  out += ".</p>\n<div class=\"wide\"><table><thead><tr>";
  for (const char* const heading : {"label", "precision", "recall", "F1", "examples"})
    out += fmt::format("<th>{}</th>", heading);
  out += "</tr></thead><tbody>";
  std::vector<size_t> order(figures.of_label.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return figures.of_label[a].actual > figures.of_label[b].actual; });
  for (size_t i = 0; i < std::min(order.size(), most_rows); ++i) {
    const LabelCounts& label = figures.of_label[order[i]];
    out += fmt::format("<tr><td>{}</td><td>{:.4f}</td><td>{:.4f}</td><td>{:.4f}</td><td>{}</td></tr>",
                       escaped_short(report.classes[order[i]], name_length), label.precision(), label.recall(),
                       label.f1(), label.actual);
  }
  out += "</tbody></table></div>\n";
  if (order.size() > most_rows)
    out += fmt::format("<p>The {} most frequent of {} labels.</p>\n", most_rows, order.size());
  return out;
}

}  // namespace

std::string confusion_html(const EvalReport& report) {
  if (report.labels) return labels_html(report);
  const ClassificationReport& r = *report.classification;
  std::string out = fmt::format(
      "<p>{} examples of the {} split: loss {:.4f} nats, accuracy {:.2f} %, macro F1 {:.4f}, calibration error "
      "{:.4f}.</p>\n",
      r.examples(), escaped(report.split), report.total.loss(), 100 * report.total.accuracy(), r.macro_f1(),
      r.calibration_error());
  return out + (r.classes() <= most_columns ? table_html(report) : many_classes_html(report));
}

}  // namespace capstan
