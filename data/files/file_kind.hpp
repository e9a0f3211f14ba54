// Archives, documents and programs that are given in place of a text. Every reader of texts looks at the first bytes by
// it (TextReader); tests/data/test_file_kind.cpp and tests/cli/inputs/test_packed_inputs.cpp hold kinds and readers.
#pragma once

#include <string>
#include <string_view>

#include "core/base/error.hpp"

namespace capstan {

/// A file is no text, by its first bytes. The message names what it is and what to do.
class NotTextError : public Error {
 public:
  using Error::Error;
};

/// Throws NotTextError where a content begins as no text does. `content`: all of it, or its first block.
void check_not_packed(std::string_view content, const std::string& file);

}  // namespace capstan
