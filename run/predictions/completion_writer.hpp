// What `capstan generate` prints. tests/cli/runs/test_commands.cpp.
#pragma once

#include <ostream>

#include "run/predictions/completions.hpp"

namespace capstan {

/// Prints the samples at their end, separated by ---. A single one is printed piece by piece while it is written.
void print_completions(const SavedRun& run, const InputText& prompt, CompletionOptions options, std::ostream& out);

}  // namespace capstan
