// A published module as a file of weights.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "run/imports/imported_module.hpp"

namespace capstan {

struct ImportFileOptions {
  std::string file, prefix, output;
  std::string
      into;  // of the model that gets the weights: a mixer, blocks.0.mixer, or a block; empty: names as they are
  std::string verify;  // empty: not verified
  ImportHints hints;
};

/// Writes a file of weights for train.init_from. `out` receives the configuration that they are for.
void import_file(const ImportFileOptions& options, std::ostream& out);

/// What the user of an import should know.
void print_notes(const std::vector<std::string>& notes, const std::vector<std::string>& approximations,
                 std::ostream& out);

}  // namespace capstan
