#include "apps/report/confusion.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "apps/report/heat_map.hpp"
#include "apps/report/html.hpp"

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

std::string picture_html(const EvalReport& report) {
  const ClassificationReport& r = *report.classification;
  HeatMap map{"rows: true class, columns: predicted class", {}, "true class", "predicted class"};
  map.matrix.rows = map.matrix.columns = static_cast<size_t>(r.classes());
  for (int64_t truth = 0; truth < r.classes(); ++truth)
    for (int64_t c = 0; c < r.classes(); ++c) map.matrix.values.push_back(static_cast<float>(share(r, truth, c)));
  std::string out = to_html({map}, "share of the true class");
  const std::vector<Confusion> frequent = most_frequent_confusions(r, named_confusions);
  if (frequent.empty()) return out;
  out += "<p>Commonest confusions:</p><ol>";
  for (const Confusion& c : frequent)
    out += fmt::format("<li>{} of {} predicted as {}: {}</li>", c.count, r.of_class(c.truth),
                       escaped_short(name_of(report, c.predicted), name_length),
                       escaped_short(name_of(report, c.truth), name_length));
  return out + "</ol>\n";
}

}  // namespace

std::string confusion_html(const EvalReport& report) {
  const ClassificationReport& r = *report.classification;
  std::string out = fmt::format(
      "<p>{} examples of the {} split: loss {:.4f} nats, accuracy {:.2f} %, macro F1 {:.4f}, calibration error "
      "{:.4f}.</p>\n",
      r.examples(), escaped(report.split), report.total.loss(), 100 * report.total.accuracy(), r.macro_f1(),
      r.calibration_error());
  return out + (r.classes() <= most_columns ? table_html(report) : picture_html(report));
}

}  // namespace capstan
