// Errors about files name the key of the configuration that names the file.
#pragma once

#include "core/base/error.hpp"
#include "data/files/split.hpp"

namespace capstan {

/// What `read` returns. An Error that it throws begins with the key of the split ("data.test"), unless it is a
/// ConfigError.
template <class Read>
auto with_key(Split split, const Read& read) {
  try {
    return read();
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& problem) {
    throw Error(fmt::format("data.{}: {}", to_string(split), problem.what()));
  }
}

}  // namespace capstan
