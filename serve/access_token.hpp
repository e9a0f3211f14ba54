// The secret that requests must have. tests/cli/test_serve.sh.
#pragma once

#include <string>

namespace capstan {

/// The token of the file or, without one, of CAPSTAN_TOKEN; empty without both. Throws ConfigError for one that no
/// header could have.
std::string access_token(const std::string& file);

}  // namespace capstan
