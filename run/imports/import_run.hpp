// A published model as a run folder.
#pragma once

#include <ostream>
#include <string>

#include "run/imports/imported_module.hpp"
#include "run/setup/run_config.hpp"

namespace capstan {

struct ImportRunOptions {
  std::string file, prefix, folder, tokenizer, classes, verify;
  ConfigOptions config;  // of the run: data and train
  ImportHints hints;
};

/// Writes the run folder: configuration, tokenizer, classes, and a checkpoint of step 0 whose ancestry names the file.
/// `out` receives what was made. Throws Error or ConfigError, and leaves nothing, unless the model is whole, fits its
/// tokenizer and passes verify_import().
void import_run(const ImportRunOptions& options, std::ostream& out);

}  // namespace capstan
