// Where the sources are, for tests that read files of the repository.
#pragma once

#include <string>

namespace capstan {

/// The absolute path of a file of the repository.
std::string source_path(const std::string& name);

}  // namespace capstan
