// `capstan import --run`: a published model as a run folder.
#pragma once

#include <string>

#include "apps/command_line/options.hpp"
#include "run/imports/imported_module.hpp"

namespace capstan {

struct ImportRunOptions {
  std::string file, prefix, folder, tokenizer, classes, verify;
  ConfigOptions config;  // of the run: data and train
  ImportHints hints;
};

/// Writes the run folder: configuration, tokenizer, classes, and a checkpoint of step 0 whose ancestry names the file.
/// Throws Error or ConfigError, and leaves nothing, unless the model is whole, fits its tokenizer and passes --verify.
void import_run(const ImportRunOptions& options);

}  // namespace capstan
