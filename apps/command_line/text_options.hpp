// What the commands that read texts with a trained model share: predict, score and embed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "run/inputs/text_input.hpp"
#include "run/run.hpp"

namespace capstan {

class CommandParser;

struct TextOptions {
  std::string run;
  std::vector<std::string> overrides;
  TextInputOptions input;
};

/// Adds RUN, FILE, --input, --text-column and --set.
void add_text_options(CommandParser& command, TextOptions& options);
/// Adds --set, of keys of a run that is there.
void add_set_option(CommandParser& command, std::vector<std::string>& overrides);

/// The texts for `run`, which must outlive them. `command` reads them, for messages: capstan predict.
TextInput open_texts(const Run& run, TextOptions options, const std::string& command);

/// Hands the texts on in batches, smaller ones where the input is a pipe that has no more at the moment; what `take`
/// prints is then flushed. An error comes after what precedes it was handed on.
void for_each_batch(TextInput& texts, size_t size, const std::function<void(const std::vector<InputText>&)>& take);

}  // namespace capstan
