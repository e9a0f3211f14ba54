// gzip as a baseline for language models.
#pragma once

#include <cstdint>
#include <string_view>

namespace capstan {

/// Bytes of `text` compressed by gzip -9, header and trailer included.
int64_t gzip_size(std::string_view text);

}  // namespace capstan
