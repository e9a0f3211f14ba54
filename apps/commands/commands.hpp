// The subcommands of `capstan`: each adds itself to the command line, with what it does, from a file NAME_command.cpp.
// A new one is such a file, a name here and an entry in command_line.cpp (docs/adding.md). Commands only read options,
// call run/ or serve/ and print; tests/cli runs them.
#pragma once

#include "apps/command_line/command.hpp"

namespace capstan {

using AddCommand = void(CLI::App& program);
AddCommand add_train_command, add_sweep_command, add_autotune_command, add_eval_command, add_predict_command,
    add_score_command, add_embed_command, add_generate_command, add_inspect_command, add_compare_command,
    add_report_command, add_verify_command, add_slim_command, add_export_command, add_serve_command, add_data_command,
    add_config_command;

/// Adds all of them.
void add_commands(CLI::App& program);

/// Parses the command line and runs the command; turns exceptions into a message on stderr and an exit code.
int run_command_line(int argc, char** argv);

}  // namespace capstan
