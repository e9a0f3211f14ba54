// What an export says about itself: to people in README.md, and to programs in config.json.
// tests/cli/runs/test_export.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "run/setup/saved_run.hpp"

namespace capstan {

/// Format, version, run, step, and fingerprints of weights, tokenizer and data.
nlohmann::json export_origin(const SavedRun& run);

/// README.md, which describes the model to people, with the YAML header of model hubs. `opened_by`: the class of
/// transformers that opens the export.
std::string model_card(const SavedRun& run, const char* opened_by);

}  // namespace capstan
