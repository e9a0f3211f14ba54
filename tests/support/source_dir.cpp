#include "tests/support/source_dir.hpp"

namespace capstan {

std::string source_path(const std::string& name) { return CAPSTAN_SOURCE_DIR "/" + name; }

}  // namespace capstan
