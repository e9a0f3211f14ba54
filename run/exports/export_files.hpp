// Files that exports take along, as run/CMakeLists.txt puts them into the program.
#pragma once

namespace capstan {

extern const char *const modeling_capstan, *const modeling_capstan_linear, *const export_onnx, *const program_version;

}  // namespace capstan
