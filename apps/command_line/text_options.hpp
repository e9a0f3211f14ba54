// What the commands that read texts with a trained model share: predict, score and embed. (eval and replay share
// --set; eval and score how a model learns from what it has scored.) tests/cli/inputs/test_inputs.cpp and
// test_predictions.cpp hold it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "run/inputs/text_input.hpp"
#include "run/run.hpp"

namespace capstan {

class CommandParser;

struct TextOptions {
  std::string run;                     // run folder, or the folder of a checkpoint
  std::vector<std::string> overrides;  // --set KEY=VALUE, for keys of the run
  TextInputOptions input;              // the file, its format and its columns
};

/// Adds RUN, FILE, --input, --text-column and --set.
void add_text_options(CommandParser& command, TextOptions& options);
/// Adds --set, for keys of a run that exists.
void add_set_option(CommandParser& command, std::vector<std::string>& overrides);

/// Adds --cache, --adapt and --adapt-decay. `purpose`: what the help of the first two begins with.
void add_adapt_options(CommandParser& command, AdaptOptions& options, const std::string& purpose);
/// Throws ConfigError for a decay without a rate.
void check_adapt_options(const AdaptOptions& options);

/// The texts for `run`, which must outlive them. `command` reads them, for messages: capstan predict.
TextInput open_texts(const Run& run, TextOptions options, const std::string& command);

/// Calls `take` with the texts in batches of `size`, or smaller ones where the input is a pipe that has no more at the
/// moment, and flushes what it has printed. Where a text causes an error, the texts in front of it are taken first.
void for_each_batch(TextInput& texts, size_t size, const std::function<void(const std::vector<InputText>&)>& take);

}  // namespace capstan
