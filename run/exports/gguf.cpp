#include "run/exports/gguf.hpp"

#include "core/base/error.hpp"

namespace capstan {

void write_gguf(const SavedRun&, const std::filesystem::path&) { throw Error("gguf: not yet"); }

}  // namespace capstan
