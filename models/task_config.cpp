// Functions of TaskConfig, the variant of all types of model, for code that does not know the type.
// tests/models/test_matrix.cpp trains each type that has blocks with every mixer.
#include "models/task_config.hpp"

#include <type_traits>
#include <vector>

#include "core/strings/strings.hpp"

namespace capstan {
namespace {

/// The type_names of the types of model that, with default options, predict `predicts`.
template <class... Types>
std::string types_that(Predicts predicts, const std::variant<Types...>&) {
  std::vector<std::string> types;
  const auto add = [&](const char* type, const ModelFacts& facts) {
    if (facts.predicts == predicts) types.emplace_back(type);
  };
  (add(Types::type_name, facts(Types{})), ...);
  return join(types, " or ");
}

}  // namespace

const char* type_of(const TaskConfig& config) {
  return std::visit([](const auto& model) { return std::decay_t<decltype(model)>::type_name; }, config);
}

ModelFacts facts_of(const TaskConfig& config) {
  return std::visit([](const auto& model) { return facts(model); }, config);
}

std::string model_types(Predicts predicts) { return types_that(predicts, TaskConfig{}); }

const ModelConfig* find_model(const TaskConfig& config) {
  return std::visit(
      [](const auto& model) -> const ModelConfig* {
        if constexpr (std::is_base_of_v<ModelConfig, std::decay_t<decltype(model)>>) return &model;
        return nullptr;
      },
      config);
}

void take_choices(const TaskConfig& saved, TaskConfig& config) {
  std::visit(
      [&](auto& open) {
        if (const auto* const chosen = std::get_if<std::decay_t<decltype(open)>>(&saved)) take_choices(*chosen, open);
      },
      config);
}

}  // namespace capstan
