// The subcommands of `capstan`: each adds itself to the command line, with the function to run if it is chosen.
#pragma once

#include <functional>

namespace capstan {

class CommandParser;

constexpr int exit_done = 0, exit_failed = 1, exit_wrong_usage = 2, exit_interrupted = 75;

/// Returns an exit code.
using Command = std::function<int()>;
/// Called with the function of the chosen command.
using Choose = std::function<void(Command)>;

void add_train_command(CommandParser& cli, const Choose& choose);
void add_sweep_command(CommandParser& cli, const Choose& choose);
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

/// Runs the command; turns exceptions into a message on stderr and an exit code. `before_message` is called first.
int run_command(const Command& command, const std::function<void()>& before_message = {});

/// Parses the command line and runs the command; turns exceptions into a message on stderr and an exit code.
int run_command_line(int argc, char** argv);

}  // namespace capstan
