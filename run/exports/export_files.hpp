// Files that exports take along, as run/CMakeLists.txt puts them into the program.
#pragma once

#include <vector>

namespace capstan {

struct ExportFile {
  const char *name, *text;
};
/// The Python files with which transformers computes a model that reads tokens, and one that reads texts.
std::vector<ExportFile> token_model_files();
std::vector<ExportFile> text_model_files();

extern const char *const export_onnx, *const export_gguf, *const program_version;

}  // namespace capstan
