// Options that several subcommands share.
#pragma once

#include <string>
#include <vector>

#include "run/setup/run_config.hpp"

namespace capstan {

class CommandOption;
class CommandParser;

/// --config FILE... and --set KEY=VALUE... Returns the option --config.
CommandOption* add_config_options(CommandParser& command, ConfigOptions& options);

/// --force: train even if the memory cannot be enough.
void add_force_flag(CommandParser& command, bool& force);

/// For CommandParser::on_stray_argument, of commands that take one run.
std::string one_run(const std::string& argument);

}  // namespace capstan
