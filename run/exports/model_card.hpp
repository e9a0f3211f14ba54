// What an export says about its model, for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "run/setup/run_model.hpp"

namespace capstan {

/// README.md with the YAML header of model hubs. `opened_by`: the class of transformers that opens the export;
/// `tables`: as write_pytorch_weights() returns them.
std::string model_card(const SavedRun& run, const char* opened_by, const nlohmann::json& tables);

}  // namespace capstan
