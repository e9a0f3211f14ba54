// The types of model there are: a new one is an include and an entry in TaskConfig (docs/adding.md). run/setup makes
// models through it; what depends on a type elsewhere asks facts_of().
#pragma once

#include <string>
#include <variant>

#include "models/language_model.hpp"
#include "models/linear_classifier.hpp"
#include "models/masked_language_model.hpp"
#include "models/text_classifier.hpp"

namespace capstan {

/// YAML: model: {type: language-model, ...}. What each of them must bring: models/model.hpp.
using TaskConfig =
    std::variant<LanguageModelConfig, TextClassifierConfig, MaskedLanguageModelConfig, LinearClassifierConfig>;

/// The name of the model's type in YAML.
const char* type_of(const TaskConfig& config);
ModelFacts facts_of(const TaskConfig& config);
/// The types of model that predict `predicts`, in words: "text-classifier or linear-classifier".
std::string model_types(Predicts predicts);

/// The part of the configuration that all models with blocks have in common; null for a model without blocks.
const ModelConfig* find_model(const TaskConfig& config);
/// What `config` leaves open, as `saved` has it; nothing of another type of model.
void take_choices(const TaskConfig& saved, TaskConfig& config);

}  // namespace capstan
