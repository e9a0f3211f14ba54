// The table of measures. tests/train/test_evaluation.cpp.
#include "train/evaluation/metrics.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/base/error.hpp"

namespace capstan {

const std::vector<Metric>& metrics() {
  using Value = std::optional<double>;
  using Better = Metric::Better;
  using Unit = Metric::Unit;
  using Of = Metric::Of;
  static const std::vector<Metric> table{
      {"loss", "loss", "Loss", Better::lower, Unit::nats, Of::all, false,
       [](const Validation& found) -> Value { return found.total.loss(); }},
      {"accuracy", "accuracy", "Accuracy", Better::higher, Unit::share, Of::all, true,
       [](const Validation& found) -> Value { return found.total.accuracy(); }},
      {"micro_f1", "micro-f1", "Micro-F1", Better::higher, Unit::share, Of::label_sets, false,
       [](const Validation& found) { return found.labels ? Value(found.labels->all.f1()) : std::nullopt; }},
      {"macro_f1", "macro-f1", "Macro-F1", Better::higher, Unit::share, Of::classes, false,
       [](const Validation& found) {
         return found.labels      ? Value(found.labels->macro_f1())
                : found.decisions ? Value(found.decisions->macro_f1)
                                  : std::nullopt;
       }},
      {"f1", "f1", "F1", Better::higher, Unit::share, Of::one_label, false,
       [](const Validation& found) { return found.decisions ? found.decisions->f1 : std::nullopt; }},
      {"precision_at_recall", "recall", "Precision at the recall", Better::higher, Unit::share, Of::one_label, false,
       [](const Validation& found) { return found.decisions ? found.decisions->precision : std::nullopt; }},
      {"recall_at_precision", "precision", "Recall at the precision", Better::higher, Unit::share, Of::one_label, false,
       [](const Validation& found) { return found.decisions ? found.decisions->recall : std::nullopt; }},
      {"cost", "cost", "Cost", Better::lower, Unit::number, Of::one_label, false,
       [](const Validation& found) { return found.decisions ? found.decisions->cost : std::nullopt; }},
  };
  return table;
}

std::string Metric::text(double value) const {
  // train.monitor: recall asks for a recall; what is measured is the precision at it.
  const bool asked_for = std::string_view(name).find("_at_") != std::string_view::npos;
  std::string noun = asked_for ? title : monitor;
  noun.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(noun.front())));
  return unit != Unit::share ? fmt::format("{} {:.4f}", noun, value) : fmt::format("{} {:.2f} %", noun, 100 * value);
}

const Metric& metric_of(const std::string& monitor) {
  const auto found =
      std::find_if(metrics().begin(), metrics().end(), [&](const Metric& metric) { return metric.monitor == monitor; });
  check(found != metrics().end(), "metrics: there is no {}", monitor);
  return *found;
}

std::vector<std::string> monitor_names() {
  std::vector<std::string> names;
  for (const Metric& metric : metrics()) names.emplace_back(metric.monitor);
  return names;
}

}  // namespace capstan
