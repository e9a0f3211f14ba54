// `capstan import`: a published model as a run folder, or a published module as a file of weights.
// tests/cli/runs/test_import_run.cpp holds that every command works on such a run, tests/apps/test_import*.cpp the
// rest.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "run/imports/imported_module.hpp"
#include "run/setup/run_config.hpp"

namespace capstan {

struct ImportRunOptions {
  /// `file`: the safetensors file; `prefix`: of its names; `folder`: the new run. Empty `tokenizer`: texts are ids;
  /// empty `classes`: numbers; empty `verify`: not verified.
  std::string file, prefix, folder, tokenizer, classes, verify;
  ConfigOptions config;  // keys of the new run's configuration: data and train
  ImportHints hints;
};

/// Writes the run folder: configuration, tokenizer, classes, and a checkpoint of step 0 whose ancestry names the file.
/// `out` receives what was made. Throws Error or ConfigError, and leaves nothing, unless the model is whole, fits its
/// tokenizer and passes verify_import().
void import_run(const ImportRunOptions& options, std::ostream& out);

// A published module as a file of weights.

struct ImportFileOptions {
  std::string file, prefix, output;  // the safetensors file, the prefix of its names, the file to write
  /// The mixer (blocks.0.mixer) or block of the model that gets the weights; empty: names as they are.
  std::string into;
  std::string verify;  // empty: not verified
  ImportHints hints;
};

/// Writes a file of weights for train.init_from. `out` receives the configuration that they are for.
void import_file(const ImportFileOptions& options, std::ostream& out);

/// Prints what the user of an import should know, a line each.
void print_notes(const std::vector<std::string>& notes, const std::vector<std::string>& approximations,
                 std::ostream& out);

}  // namespace capstan
