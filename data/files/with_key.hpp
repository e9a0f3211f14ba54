// Errors about files name the key of the configuration that names the file.
#pragma once

#include <string>

#include "core/base/error.hpp"

namespace capstan {

/// What `read` returns. An Error that it throws begins with the key ("data.test"), unless it is a ConfigError.
template <class Read>
auto with_key(const std::string& key, const Read& read) {
  try {
    return read();
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& problem) {
    throw Error(fmt::format("{}: {}", key, problem.what()));
  }
}

}  // namespace capstan
