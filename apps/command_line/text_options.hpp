// What the commands that read texts with a trained model share: predict, score and embed.
// tests/cli/inputs/test_inputs.cpp and test_predictions.cpp hold it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "run/inputs/text_input.hpp"
#include "run/run.hpp"

namespace capstan {

struct TextOptions {
  std::string run;                     // run folder, or the folder of a checkpoint
  std::vector<std::string> overrides;  // --set KEY=VALUE, for keys of the run
  TextInputOptions input;              // the file, its format and its columns
};

/// Adds RUN, FILE, --input, --text-column and --set.
void add_text_options(CLI::App& command, TextOptions& options);

/// Adds --beam and --length-penalty.
void add_beam_options(CLI::App& command, PredictOptions& completions);

/// The texts for `run`, which must outlive them. `command` reads them, for messages: capstan predict.
TextInput open_texts(const Run& run, TextOptions options, const std::string& command);

}  // namespace capstan
