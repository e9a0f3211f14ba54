// tests/cli/training/test_decisions.cpp.
#include "run/setup/decision_goal.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"

namespace capstan {

std::optional<DecisionGoal> decision_goal(const RunConfig& config, const DataSource& data) {
  using Kind = DecisionGoal::Kind;
  const ModelFacts facts = facts_of(config.model);
  const bool multi_label = facts_of(config.data).multi_label();
  const std::string& monitor = config.train.monitor;
  const std::vector<std::string> classes = data.classes();
  if (!facts.classifies() || classes.empty()) return std::nullopt;
  const auto index_of = [&](const char* key, const std::string& name) {
    const auto found = std::find(classes.begin(), classes.end(), name);
    if (found != classes.end()) return static_cast<int64_t>(found - classes.begin());
    throw ConfigError(fmt::format("train.{}: the data has no class '{}'; it has {}", key, name, join_first(classes)));
  };
  DecisionGoal goal;
  goal.classes = static_cast<int64_t>(classes.size());
  if (monitor == "macro-f1") {
    goal.kind = Kind::macro_f1;
  } else if (monitor == "f1" || monitor == "recall" || monitor == "precision") {
    goal.kind = monitor == "f1" ? Kind::f1 : monitor == "recall" ? Kind::recall : Kind::precision;
    goal.label = index_of("monitor_class", config.train.monitor_class);
    goal.at_least = config.train.monitor_at_least;
  } else if (monitor == "cost") {
    goal.kind = Kind::cost;
    goal.rule.assign(classes.size() * classes.size(), 1);
    for (size_t c = 0; c < classes.size(); ++c) goal.rule[c * classes.size() + c] = 0;
    for (const MistakeCost& mistake : config.train.costs) {
      const int64_t row = index_of("costs", mistake.truth);
      const int64_t only = mistake.predicted.empty() ? -1 : index_of("costs", mistake.predicted);
      for (int64_t column = 0; column < goal.classes; ++column)
        if (only < 0 ? column != row : column == only)
          goal.rule[static_cast<size_t>(row * goal.classes + column)] = mistake.cost;
    }
  } else if (!multi_label && facts.class_weights != nullptr && data.has(Split::train)) {
    goal.rule = weights_of(*facts.class_weights, data.class_counts(), data.training().examples_per_epoch(), false);
  }
  if (goal.kind == Kind::given && goal.rule.empty()) return std::nullopt;
  return goal;
}

}  // namespace capstan
