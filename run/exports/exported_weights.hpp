// The weights of an export for PyTorch. tests/cli/runs/test_export.cpp.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "run/setup/saved_run.hpp"

namespace capstan {

/// Writes the weights as a safetensors file for PyTorch, in the types that the run has them in. Of a table of n-grams
/// the run has the rows that are not zero: so has the file, with a tensor NAME_rows that says which rows these are.
/// Returns, by name, what a reader needs to make whole tables of them: rows, stored (how many of them), bytes and form
/// (of NAME_rows) and factor.
nlohmann::json write_pytorch_weights(const SavedRun& run, const std::filesystem::path& file);

}  // namespace capstan
