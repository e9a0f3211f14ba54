// What an export says about its model, for people.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "run/setup/run_model.hpp"

namespace capstan {

/// README.md with the YAML header of model hubs. `opened_by`: the class of transformers that opens the export;
/// `tables`: as write_pytorch_weights() returns them.
std::string model_card(const SavedRun& run, const char* opened_by, const nlohmann::json& tables);

// Which run an export is of.

/// The number of the form in which models are exported. It grows when what reads an earlier export cannot read this.
constexpr int64_t export_format = 1;

/// Format, version, run, step, and fingerprints of weights, tokenizer and data.
nlohmann::json export_origin(const SavedRun& run);

}  // namespace capstan
