// Prints the figures of `capstan eval`, as text or JSON. Names of figures are an interface and must not change:
// tests/cli/runs/test_eval.cpp, test_multi_label.cpp and test_decisions.cpp.
#include "run/predictions/eval_report.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/strings/printable.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_data.hpp"

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

/// Thresholds of the curves: 0.05, 0.1 ... 0.95.
std::vector<double> curve_thresholds() {
  std::vector<double> thresholds;
  for (int step = 1; step < 20; ++step) thresholds.push_back(step / 20.0);
  return thresholds;
}

/// Prints a curve for each class, a line per threshold. Neighbouring thresholds with the same figures share a line.
void print_curves(const EvalReport& report, std::ostream& out) {
  if (!report.ranked || !report.ranked->kept()) return;
  for (size_t c = 0; c < report.classes.size(); ++c) {
    out << fmt::format("\n{}, from a probability of\n{:>12}{:>11}{:>9}{:>9}\n", printable_line(report.classes[c]),
                       "threshold", "precision", "recall", "f1");
    std::string first, last, figures;
    const auto print = [&] {
      out << fmt::format("{:>12}{}\n", first == last ? first : first + " to " + last, figures);
    };
    for (const double threshold : curve_thresholds()) {
      const LabelCounts at = report.ranked->at(static_cast<int64_t>(c), threshold);
      const std::string line = fmt::format("{:>11.4f}{:>9.4f}{:>9.4f}", at.precision(), at.recall(), at.f1());
      const std::string here = fmt::format("{:.2f}", threshold);
      if (!first.empty() && line != figures) print();
      if (line != figures) first = here;
      last = here;
      figures = line;
    }
    print();
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

/// The measures of classes in the table of metrics, of these decisions; their names begin with `prefix`.
void add_class_metrics(const ClassificationReport& decided, const DecisionGoal& goal, const std::string& prefix,
                       std::vector<Figure>& list) {
  const int64_t occurring = decided.occurring(), known = decided.classes();
  const Validation found{Evaluation(), std::nullopt, figures_of(decided, goal)};
  for (const Metric& metric : metrics()) {
    if (metric.of != Metric::Of::one_label && metric.of != Metric::Of::classes) continue;
    const std::optional<double> value = metric.compute(found);
    if (!value) continue;
    const bool of_some = prefix.empty() && metric.name == std::string("macro_f1") && occurring < known;
    list.push_back(
        {prefix + metric.name, *value, 4, of_some ? fmt::format("over {} of {} classes", occurring, known) : ""});
  }
}

}  // namespace

std::string ClassFigures::text(double figure) const { return occurs ? fmt::format("{:.4f}", figure) : "-"; }

std::vector<Figure> EvalReport::figures() const {
  std::vector<Figure> list{{"targets", static_cast<double>(total.targets), 0}, {"loss", total.loss(), 6}};
  const auto add_metrics = [&](bool label_sets) {
    for (const Metric& metric : metrics()) {
      const auto value = metric.compute({total, labels});
      const bool of_sets = metric.of == Metric::Of::label_sets || metric.of == Metric::Of::classes;
      if (&metric != &metrics().front() && of_sets == label_sets && value) list.push_back({metric.name, *value, 4});
    }
  };
  const auto add_power = [&](const std::string& name, double value) {  // a power of e, infinite for a large loss
    if (std::isfinite(value)) list.push_back({name, value, 3});
  };
  const auto add_of_tokens = [&](const std::string& prefix, double loss_sum, double loss) {
    add_power(prefix + "perplexity", std::exp(loss));
    if (!text) return;
    list.push_back({prefix + "bits_per_byte", loss_sum / std::log(2.0) / static_cast<double>(text->bytes), 4});
    if (const int64_t words = text->words.value_or(0); words > 0)
      add_power(prefix + "word_perplexity", std::exp(loss_sum / static_cast<double>(words)));
  };
  if (predicts_tokens) add_of_tokens("", total.loss_sum, total.loss());
  if (adapted) {
    list.push_back({"adapted_loss", adapted->loss(), 6});
    add_of_tokens("adapted_", adapted->loss_sum, adapted->loss());
    if (adapted->rule) {
      list.push_back({"cache_sharpness", adapted->rule->sharpness, 1});
      list.push_back({"cache_weight", adapted->rule->weight, 2});
    }
  }
  add_metrics(false);
  if (pairs) {
    list.push_back({"pairs", static_cast<double>(pairs->pairs), 0});
    list.push_back({"exact_match", pairs->exact_match, 4});
    list.push_back({"log_probability", pairs->log_probability, 4});
  }
  if (labels) {
    if (labels->thresholds.empty()) list.push_back({"threshold", labels->threshold, 2});
    list.push_back({"micro_precision", labels->all.precision(), 4});
    list.push_back({"micro_recall", labels->all.recall(), 4});
    add_metrics(true);
    for (const PrecisionAt& at : labels->precision_at)
      list.push_back({fmt::format("precision_at_{}", at.k), at.precision, 4});
  }
  if (classification) {
    add_class_metrics(*classification, goal, "", list);
    if (plain) {
      list.push_back({"plain_accuracy", plain->accuracy(), 4});
      add_class_metrics(*plain, goal, "plain_", list);
    }
    list.push_back({"calibration_error", classification->calibration_error(), 4});
  }
  if (ranked)
    if (const auto mean = ranked->mean_average_precision()) list.push_back({"average_precision", *mean, 4});
  return list;
}

std::vector<ClassFigures> EvalReport::class_figures() const {
  std::vector<ClassFigures> list;
  if (labels)
    for (size_t c = 0; c < labels->of_label.size(); ++c) {
      const LabelCounts& label = labels->of_label[c];
      list.push_back({label.precision(), label.recall(), label.f1(), label.actual});
      if (!labels->thresholds.empty()) list.back().threshold = labels->thresholds[c];
    }
  if (const auto& r = classification)
    for (int64_t c = 0; c < r->classes(); ++c)
      list.push_back(
          {r->precision(c), r->recall(c), r->f1(c), r->of_class(c), std::nullopt, std::nullopt, r->occurs(c)});
  for (size_t c = 0; ranked && c < list.size(); ++c)
    list[c].average_precision = ranked->average_precision(static_cast<int64_t>(c));
  return list;
}

double EvalReport::figure(const std::string& name) const {
  std::vector<std::string> names;
  for (const Figure& candidate : figures()) {
    if (candidate.name == name) return candidate.value;
    names.push_back(candidate.name);
  }
  throw Error(fmt::format("the evaluation has no figure {}; it has {}", name, join(names)));
}

void print_text(const EvalReport& report, std::ostream& out, bool curves) {
  out << fmt::format("split {}\n", report.split);
  for (const Figure& figure : report.figures())
    out << fmt::format("{} {:.{}f}{}{}\n", figure.name, figure.value, figure.digits, figure.over.empty() ? "" : " ",
                       figure.over);
  print_classes(report, out);
  if (curves) print_curves(report, out);
  if (!report.classification) return;
  if (report.classification->classes() <= widest_table)
    print_confusion(report, out);
  else
    print_most_frequent_confusions(report, out);
}

namespace {

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

void print_json(const EvalReport& report, std::ostream& out) {
  nlohmann::ordered_json json{{"split", report.split}};
  for (const Figure& figure : report.figures())
    if (figure.digits == 0)
      json[figure.name] = static_cast<int64_t>(figure.value);
    else
      json[figure.name] = figure.value;
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
      for (const double threshold : curve_thresholds()) {
        const LabelCounts at = report.ranked->at(static_cast<int64_t>(c), threshold);
        added["curve"].push_back({{"threshold", threshold}, {"precision", at.precision()}, {"recall", at.recall()}});
      }
  }
  if (report.classification) add_confusion(report, json);
  out << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

}  // namespace capstan
