// tests/cli/test_serve.sh.
#include "serve/access_token.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/error.hpp"
#include "data/files/text_file.hpp"

namespace capstan {

std::string access_token(const std::string& file) {
  const char* const set = std::getenv("CAPSTAN_TOKEN");
  std::string token = set != nullptr ? set : "";
  if (!file.empty()) token = TextReader::input(file, 1).read_rest();
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (!printable || (token.empty() && (!file.empty() || set != nullptr)))
    throw ConfigError(fmt::format("{}: the token must be one line of printable ASCII characters without blanks",
                                  file.empty() ? "CAPSTAN_TOKEN" : file));
  return token;
}

}  // namespace capstan
