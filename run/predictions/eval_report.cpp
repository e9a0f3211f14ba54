// The figures of an evaluation. Their names are an interface and must not change: tests/cli/runs/test_eval.cpp,
// test_multi_label.cpp and test_decisions.cpp.
#include "run/predictions/eval_report.hpp"

#include <cmath>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

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
  std::vector<Figure> list{{"targets", static_cast<double>(total.targets + total.unseen), 0},
                           {"loss", total.loss(), 6}};
  if (total.unseen > 0)
    list.push_back(
        {"unseen", static_cast<double>(total.unseen), 0, "of classes that the model has not: wrong, no loss"});
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

}  // namespace capstan
