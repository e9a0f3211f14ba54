// A run as a folder for the Python library transformers.
#pragma once

#include <filesystem>

#include "run/setup/run_model.hpp"

namespace capstan {

/// Writes config.json, generation_config.json, model.safetensors, the Python files that compute the model, the
/// tokenizer and a model card.
void write_huggingface(const SavedRun& run, const std::filesystem::path& folder);

}  // namespace capstan
