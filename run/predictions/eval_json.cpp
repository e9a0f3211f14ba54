// The figures of `capstan eval` as JSON, which programs and the report read. tests/cli/runs/test_eval.cpp.
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"
#include "run/predictions/eval_report.hpp"

namespace capstan {
namespace {

/// With more classes than this there is a list of what was confused instead of a matrix.
constexpr int64_t widest_confusion_matrix = 200;
constexpr double curve_begin[] = {0.001, 0.003, 0.01, 0.03};  // and then every 0.05

/// Adds "confusion", a matrix, or for many classes "confusions", a list.
void add_confusion(const EvalReport& report, nlohmann::ordered_json& json) {
  const ClassificationReport& r = *report.classification;
  if (r.classes() > widest_confusion_matrix) {
    for (const Confusion& c : most_frequent_confusions(r, r.counts().size()))
      json["confusions"].push_back({{"count", c.count},
                                    {"class", report.classes[static_cast<size_t>(c.truth)]},
                                    {"predicted", report.classes[static_cast<size_t>(c.predicted)]}});
    return;
  }
  for (int64_t truth = 0; truth < r.classes(); ++truth) {
    nlohmann::ordered_json row;
    for (int64_t predicted = 0; predicted < r.classes(); ++predicted) row.push_back(r.count(truth, predicted));
    json["confusion"].push_back(row);
  }
}

}  // namespace

nlohmann::ordered_json eval_json(const EvalReport& report) {
  nlohmann::ordered_json json{{"split", report.split}};
  for (const Figure& figure : report.figures())
    if (figure.digits == 0)
      json[figure.name] = static_cast<int64_t>(figure.value);
    else
      json[figure.name] = figure.value;
  if (report.classification)
    for (const CoveragePoint& point : report.classification->coverage())
      json["coverage"].push_back(
          {{"probability", point.probability}, {"coverage", point.coverage}, {"accuracy", point.accuracy}});
  const std::vector<ClassFigures> classes = report.class_figures();
  for (size_t c = 0; c < classes.size(); ++c) {
    json["classes"].push_back({{"class", report.classes[c]},
                               {"precision", classes[c].precision},
                               {"recall", classes[c].recall},
                               {"f1", classes[c].f1},
                               {"examples", classes[c].examples}});
    nlohmann::ordered_json& added = json["classes"].back();
    if (classes[c].threshold) added["threshold"] = *classes[c].threshold;
    if (classes[c].average_precision) added["average_precision"] = *classes[c].average_precision;
    if (report.ranked && report.ranked->kept())
      for (int step = -3; step < 20; ++step) {  // rare classes have their thresholds far below 0.05
        const double threshold = step > 0 ? step / 20.0 : curve_begin[step + 3];
        const LabelCounts at = report.ranked->at(static_cast<int64_t>(c), threshold);
        added["curve"].push_back({{"threshold", threshold}, {"precision", at.precision()}, {"recall", at.recall()}});
      }
  }
  if (report.classification) {
    add_confusion(report, json);
    for (const CalibrationBin& bin : report.classification->calibration())
      json["calibration"].push_back(
          {{"confidence", bin.confidence}, {"accuracy", bin.accuracy}, {"examples", bin.examples}});
  }
  return json;
}

void print_json(const EvalReport& report, std::ostream& out) { out << json_line(eval_json(report)) << '\n'; }

}  // namespace capstan
