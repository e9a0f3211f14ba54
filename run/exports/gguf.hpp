// A run as a file for llama.cpp.
#pragma once

#include <filesystem>

#include "run/setup/run_model.hpp"

namespace capstan {

/// Writes model.gguf and a model card. Throws Error unless the model has Llama's shape, naming the keys in the way.
void write_gguf(const SavedRun& run, const std::filesystem::path& folder);

}  // namespace capstan
