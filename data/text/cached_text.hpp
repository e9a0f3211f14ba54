// Large texts: tokenised once, into files that later runs map.
#pragma once

#include <memory>

#include "data/files/progress.hpp"
#include "data/text/text_loading.hpp"

namespace capstan {

/// What load_text() gives, by way of config.cache.
TextData load_cached_text(const TextSourceConfig& config, const FileLists& lists,
                          std::shared_ptr<const Tokenizer> tokenizer, const LogLine& log);

}  // namespace capstan
