// Tokenizers in the form of the library `tokenizers`, for export_run.cpp. They must give the ids that Capstan's give,
// for any text: tests/interop/transformers_tokenizers.py compares them.
#pragma once

#include <string>

#include "run/setup/saved_run.hpp"

namespace capstan {

struct TokenizerFiles {
  std::string tokenizer, config;  // the contents of tokenizer.json and tokenizer_config.json
};

/// Throws Error for a tokenizer that cannot be written so, naming what is in the way.
TokenizerFiles tokenizer_files(const SavedRun& run);

/// The number of tokens of a text from which on `capstan predict` cuts it, or fills its blanks in parts of it; 0: none.
int64_t longest_text(const SavedRun& run);

}  // namespace capstan
