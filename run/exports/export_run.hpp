// Trained models in the formats of other programs, for `capstan export` and the Python package. The files hold names
// that the exported Python code reads (scripts beside it in the folder), so both change together.
// tests/cli/runs/test_export.cpp checks the folder, tests/interop/transformers_*.py, onnx_runtime.py and llama_cpp.py
// compare answers with Capstan's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/config/schema.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {

/// huggingface: a folder for the Python library transformers. onnx, gguf: the same, with a script that makes ONNX
/// files, or the file for llama.cpp, of it.
enum class ExportFormat { huggingface, onnx, gguf };
inline std::vector<EnumName<ExportFormat>> enum_names(ExportFormat) {
  return {{ExportFormat::huggingface, "huggingface"}, {ExportFormat::onnx, "onnx"}, {ExportFormat::gguf, "gguf"}};
}

/// The script in the folder that makes the files of this format, such as "export_onnx.py"; "" where there is none.
std::string export_script(ExportFormat format);

/// Writes the model into a new folder, which is whole or not there; returns the names of its files. Throws Error when
/// the folder holds anything already, and for a model that the format does not have, naming the keys in the way.
std::vector<std::string> export_run(const SavedRun& run, ExportFormat format, const std::filesystem::path& folder);

}  // namespace capstan
