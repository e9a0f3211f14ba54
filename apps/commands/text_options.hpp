// Options of the commands that read texts with a trained model: predict, score and embed.
#pragma once

#include <string>

#include "run/predictions/text_input.hpp"

namespace capstan {

class CommandParser;

/// Adds RUN, FILE and --input.
void add_text_options(CommandParser& command, std::string& run, TextInputOptions& input);

}  // namespace capstan
