// Files that an export writes unchanged, Python sources above all. run/CMakeLists.txt compiles their text into the
// program, which then needs no installed files; export_run.cpp writes them.
#pragma once

#include <vector>

namespace capstan {

struct ExportFile {
  const char *name, *text;  // the name in the exported folder, and the content
};
/// The Python files with which transformers computes a model that reads tokens, and one that reads texts.
std::vector<ExportFile> token_model_files();
std::vector<ExportFile> text_model_files();

/// The texts of the scripts that make ONNX files and the file for llama.cpp, and the version of Capstan.
extern const char *const export_onnx, *const export_gguf, *const program_version;

}  // namespace capstan
