// What an export says about its model, for people.
#pragma once

#include <string>

#include "run/setup/run_model.hpp"

namespace capstan {

/// README.md with the YAML header of model hubs. `opened_by`: the class of transformers that opens the export; null: a
/// GGUF file.
std::string model_card(const SavedRun& run, const char* opened_by);

}  // namespace capstan
