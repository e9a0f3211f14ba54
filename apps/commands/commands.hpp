// The subcommands of `capstan`: each adds itself to the command line, with the function to run if it is chosen.
#pragma once

#include "apps/command_line/command.hpp"

namespace capstan {

class CommandParser;

void add_train_command(CommandParser& cli, const Choose& choose);
void add_sweep_command(CommandParser& cli, const Choose& choose);
void add_autotune_command(CommandParser& cli, const Choose& choose);
void add_eval_command(CommandParser& cli, const Choose& choose);
void add_predict_command(CommandParser& cli, const Choose& choose);
void add_score_command(CommandParser& cli, const Choose& choose);
void add_embed_command(CommandParser& cli, const Choose& choose);
void add_generate_command(CommandParser& cli, const Choose& choose);
void add_inspect_command(CommandParser& cli, const Choose& choose);
void add_import_command(CommandParser& cli, const Choose& choose);
void add_compare_command(CommandParser& cli, const Choose& choose);
void add_metrics_command(CommandParser& cli, const Choose& choose);
void add_report_command(CommandParser& cli, const Choose& choose);
void add_verify_command(CommandParser& cli, const Choose& choose);
void add_data_command(CommandParser& cli, const Choose& choose);
void add_config_command(CommandParser& cli, const Choose& choose);
/// `man` and `completion`, which describe all commands of `cli`.
void add_pages_commands(CommandParser& cli, const Choose& choose);

/// Parses the command line and runs the command; turns exceptions into a message on stderr and an exit code.
int run_command_line(int argc, char** argv);

}  // namespace capstan
